// Package models is the operator's pages about the catalogue: models with their
// PCI ids and offers by region, and named VM types.
package models

import (
	"context"
	"strings"

	"berth/services"
	"berth/services/catalog"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
	"berth/web/urls"
)

// Index is the page that lists everything on offer.
type Index struct {
	layout.Shell
	Models  []Model
	Types   []Type
	Regions []string
}

// Model is an entry of the catalogue.
type Model struct {
	ID     string
	Memory catalog.Memory
	PCIIDs []string
	Offers []Offer // by region
}

// Offer is how a model is offered in a region.
type Offer struct {
	Region      string
	Limits      string // in words; empty: none binds
	HourlyPrice string // empty: none
}

// Type is a named VM type.
type Type struct {
	Name        string
	VCores      int
	MemoryMiB   int
	Generation  string
	GPUModel    string
	GPUCount    int
	HourlyPrice string
}

// ModelForm is the page that edits a model, or adds one.
type ModelForm struct {
	layout.Shell
	New     bool
	ID      string
	Version string
	Fields  map[string]string // as typed
	Broken  []services.Violation
	Offers  []OfferForm // by region; none of a new model
}

// OfferForm edits how a model is offered in a region.
type OfferForm struct {
	Region  string
	Offered bool
	Version string
	Fields  map[string]string // as typed
	Broken  []services.Violation
	Misfits []Misfit // what the change would not allow
}

// Misfit is a VM with GPUs that a change would not allow.
type Misfit struct {
	VM      services.VMID
	Name    string
	Account string
	GPUs    string
	Broken  []services.Violation
}

// TypeForm is the page that edits a named VM type, or adds one.
type TypeForm struct {
	layout.Shell
	New     bool
	Name    string
	Version string
	Fields  map[string]string // as typed
	Models  []string          // to choose from
	Broken  []services.Violation
}

func (f ModelForm) title(ctx context.Context) string {
	if f.New {
		return i18n.T(ctx, "models.new-model")
	}
	return f.ID
}

// refused is the region whose offer the broken rules are about; empty: the model.
func (f ModelForm) refused() string {
	for _, o := range f.Offers {
		if len(o.Broken) > 0 {
			return o.Region
		}
	}
	return ""
}

func (f ModelForm) action() string {
	if f.New {
		return urls.AdminModels
	}
	return urls.AdminModel(f.ID)
}

func (f TypeForm) title(ctx context.Context) string {
	if f.New {
		return i18n.T(ctx, "models.new-type")
	}
	return f.Name
}

func (f TypeForm) action() string {
	if f.New {
		return urls.AdminTypes
	}
	return urls.AdminType(f.Name)
}

func field(ctx context.Context, fields map[string]string, broken []services.Violation, name, label string) components.Field {
	return components.Field{Name: name, Label: i18n.T(ctx, label), Value: fields[name], Error: components.Of(ctx, broken, name)}
}

func (f ModelForm) field(ctx context.Context, name string) components.Field {
	if name == "id" { // a word that message files keep for themselves
		return field(ctx, f.Fields, f.Broken, name, "models.field.model_id")
	}
	return field(ctx, f.Fields, f.Broken, name, "models.field."+name)
}

func (f TypeForm) field(ctx context.Context, name string) components.Field {
	return field(ctx, f.Fields, f.Broken, name, "models.field."+name)
}

func (f OfferForm) field(ctx context.Context, name string) components.Field {
	return field(ctx, f.Fields, f.Broken, name, "models.field."+name).Within(f.Region)
}

func (f TypeForm) modelOptions(ctx context.Context) []components.Option {
	return components.AnyOf(f.Models, f.Fields["gpu_model"], i18n.T(ctx, "models.no-gpus"))
}

func with(f components.Field, hint string) components.Field {
	f.Hint = hint
	return f
}

func optional(f components.Field) components.Field {
	f.Optional = true
	return f
}

func mono(f components.Field) components.Field {
	f.Mono = true
	return f
}

func dash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

// Limits are those of an offer in words; empty: none binds.
func Limits(ctx context.Context, o catalog.Offer) string {
	var parts []string
	if o.MaxVCores > 0 {
		parts = append(parts, i18n.T(ctx, "models.limits.vcores", "Max", o.MaxVCores))
	}
	if o.MaxMemoryMiB > 0 {
		parts = append(parts, i18n.T(ctx, "models.limits.memory", "Max", i18n.GiB(ctx, o.MaxMemoryMiB)))
	}
	if len(o.Generations) > 0 {
		parts = append(parts, strings.Join(o.Generations, " "))
	}
	return strings.Join(parts, ", ")
}
