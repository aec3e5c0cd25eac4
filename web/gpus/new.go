package gpus

import (
	"context"
	"strings"

	"berth/services"
	"berth/services/catalog"
	"berth/web/components"
	"berth/web/i18n"
	"berth/web/layout"
)

// New is the form that allocates a GPU. It is posted to urls.GPUs as model,
// zone, name, generation, delete_on_vm_deletion ("true" or none).
type New struct {
	layout.Shell
	Values      NewValues
	Models      []ModelChoice
	Zones       []ZoneChoice
	Generations []string // of the chosen model in the chosen zone's region; the first is what one gets by default
	Limits      *Limits  // of the chosen model in the chosen zone's region; nil: not both chosen yet
	Quota       *Quota   // likewise
	Broken      []services.Violation
	Key         string // idempotency
}

// NewValues are the fields as filled in so far.
type NewValues struct {
	Model              string
	Zone               string
	Name               string
	Generation         string
	DeleteOnVMDeletion bool
}

// ModelChoice is a model that can be allocated, or not and why.
type ModelChoice struct {
	ID           string
	Architecture string
	Memory       catalog.Memory
	UseCases     []string
	Because      *services.Violation // why it is impossible; nil: it is possible
}

// ZoneChoice is a zone where the chosen model can be allocated, or not and why.
type ZoneChoice struct {
	ID      string
	Region  string
	Free    bool                // a card of the chosen model is free now
	Because *services.Violation // why it is impossible; nil: it is possible
}

func because(ctx context.Context, v *services.Violation) string {
	if v == nil {
		return ""
	}
	return components.Sentence(ctx, *v)
}

func (n New) modelOptions(ctx context.Context) []components.Option {
	out := make([]components.Option, 0, len(n.Models))
	for _, m := range n.Models {
		out = append(out, components.Option{
			Value: m.ID, Label: m.ID, Detail: dotted(components.Memory(ctx, m.Memory), m.Architecture), Reason: because(ctx, m.Because),
			Selected: m.ID == n.Values.Model && m.Because == nil,
		})
	}
	return out
}

func (n New) zoneOptions(ctx context.Context) []components.Option {
	out := make([]components.Option, 0, len(n.Zones))
	for _, z := range n.Zones {
		detail := z.Region
		if n.Values.Model != "" && z.Because == nil && z.Free {
			detail = dotted(z.Region, i18n.T(ctx, "gpus.free-now"))
		}
		out = append(out, components.Option{
			Value: z.ID, Label: z.ID, Detail: detail, Reason: because(ctx, z.Because),
			Selected: z.ID == n.Values.Zone && z.Because == nil,
		})
	}
	return out
}

func (n New) generationOptions(ctx context.Context) []components.Option {
	var out []components.Option
	for i, g := range n.Generations {
		o := components.Option{Value: g, Label: g, Selected: g == n.Values.Generation || n.Values.Generation == "" && i == 0}
		if i == 0 {
			o.Label = i18n.T(ctx, "gpus.generation-default", "Generation", g)
		}
		out = append(out, o)
	}
	return out
}

// model is the chosen model; ok is false where none is chosen.
func (n New) model() (m ModelChoice, ok bool) {
	for _, m := range n.Models {
		if m.ID == n.Values.Model {
			return m, true
		}
	}
	return ModelChoice{}, false
}

func dotted(parts ...string) string {
	out := ""
	for _, p := range parts {
		if p == "" {
			continue
		}
		if out != "" {
			out += " · "
		}
		out += p
	}
	return out
}

// bar draws the quota with one more GPU in it.
func (q Quota) bar(ctx context.Context) components.Bar {
	return components.Bar{Label: q.words(ctx), Total: *q.Max, Parts: []components.BarPart{
		{Tone: components.ToneHeld, Value: q.Used}, {Tone: components.ToneInfo, Value: 1},
	}}
}

func zoneHint(ctx context.Context, n New) string {
	if n.Values.Model == "" {
		return i18n.T(ctx, "gpus.zone-hint")
	}
	return ""
}

func useCases(ctx context.Context, all []string) string {
	words := make([]string, 0, len(all))
	for _, u := range all {
		words = append(words, components.UseCase(ctx, u))
	}
	return strings.Join(words, ", ")
}
