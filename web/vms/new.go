package vms

import (
	"context"

	"berth/services"
	"berth/services/catalog"
	"berth/web/components"
	"berth/web/i18n"
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
	Memory catalog.Memory
	Broken []services.Violation
}

func (n New) typeFields() typeFields {
	return typeFields{choice: n.Values.Type, named: n.Types, generations: n.Generations, broken: n.Broken}
}

func (n New) zoneOptions(ctx context.Context) []components.Option {
	options := make([]components.Option, 0, len(n.Zones))
	for _, z := range n.Zones {
		options = append(options, components.Option{
			Value: z.ID, Label: z.ID, Selected: z.ID == n.Values.Zone,
			Detail: z.Region + " · " + i18n.T(ctx, "storage."+string(z.Storage)),
		})
	}
	return options
}

func (n New) tenancyOptions(ctx context.Context) []components.Option {
	dedicated := n.Values.Tenancy == catalog.TenancyDedicated
	return []components.Option{
		{
			Value: string(catalog.TenancyDefault), Label: tenancy(ctx, catalog.TenancyDefault), Selected: !dedicated,
			Detail: i18n.T(ctx, "tenancy.default-means"),
		},
		{
			Value: string(catalog.TenancyDedicated), Label: tenancy(ctx, catalog.TenancyDedicated), Selected: dedicated,
			Detail: i18n.T(ctx, "tenancy.dedicated-means"),
		},
	}
}

func (n New) imageOptions() []components.Option {
	options := make([]components.Option, 0, len(n.Images))
	for _, m := range n.Images {
		options = append(options, components.Option{Value: m.ID, Label: m.Name, Selected: m.ID == n.Values.Image})
	}
	return options
}

// answer is the word for whether a GPU and a type go together.
func answer(ctx context.Context, yes bool) string {
	if yes {
		return i18n.T(ctx, "vm.yes")
	}
	return i18n.T(ctx, "vm.no")
}
