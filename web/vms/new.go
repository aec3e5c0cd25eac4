package vms

import (
	"berth/services"
	"berth/services/catalog"
	"berth/web/layout"
)

// New is the form that makes a machine. It is posted to urls.VMs as name, zone,
// the type (see TypeChoice), tenancy, image, ssh_key, user_data.
type New struct {
	layout.Shell
	Values      NewValues
	Zones       []ZoneChoice
	Images      []Image
	Types       []NamedType
	Generations []string        // CPU generations to choose from, oldest first
	Becomes     *catalog.VMType // the type as filled in; nil: it can't be read
	Takes       []Taking        // which GPUs such a machine takes, in the zone's region; empty: no zone chosen, or no type
	Broken      []services.Violation
	Key         string // idempotency
}

// NewValues are the fields as filled in so far.
type NewValues struct {
	Name     string
	Zone     string
	Type     TypeChoice
	Tenancy  catalog.Tenancy // empty: default
	Image    string
	SSHKey   string
	UserData string
}

// ZoneChoice is a zone to make a machine in.
type ZoneChoice struct {
	ID      string
	Region  string
	Storage services.Storage
}

// Image is a system that a machine can be made from.
type Image struct {
	ID   string
	Name string
}

// Taking tells whether a machine of the filled-in type takes GPUs of a model.
type Taking struct {
	Model  string
	Memory string // "80 GB HBM3"; empty: unknown
	Broken []services.Violation
}
