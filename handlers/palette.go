package handlers

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"berth/services/fleet"
	"berth/web/components"
	"berth/web/palette"
	"berth/web/urls"
)

// fleetFinder finds things of the whole fleet; for operators.
type fleetFinder interface {
	Search(ctx context.Context, text string, limit int) ([]fleet.Hit, error)
}

// paletteRows bounds each group of what was found.
const paletteRows = 5

// palette offers pages, actions, and what matches the text so far.
func (h searchPages) palette(r *request) error {
	text := strings.TrimSpace(r.QueryParam("q"))
	shell, err := r.shell()
	if err != nil {
		return err
	}
	l := palette.List{Text: text}
	found, err := h.everything(r, text, paletteRows)
	if err != nil {
		return err
	}
	add := func(key string, items []palette.Item) {
		if len(items) > 0 {
			l.Groups = append(l.Groups, palette.Group{Key: key, Items: items})
		}
	}
	for _, g := range found {
		add(g.Key, g.Items)
	}
	add("pages", palette.Pages(r.ctx(), shell, text))
	add("actions", palette.Actions(r.ctx(), shell, text))
	return r.render(http.StatusOK, palette.Choices(l))
}

// everything is what the user may see that matches a text, in groups: of the
// account looked at, and of the whole fleet for operators.
func (h searchPages) everything(r *request, text string, limit int) ([]palette.Group, error) {
	if text == "" {
		return nil, nil
	}
	own, err := h.own(r, text, limit)
	if err != nil || !r.session.Admin {
		return own, err
	}
	hits, err := h.fleet.Search(r.ctx(), text, limit)
	return joined(own, fleetGroups(hits)), err
}

// joined puts what is the account's and what is the fleet's of one kind
// together, each thing once.
func joined(own, fleet []palette.Group) []palette.Group {
	for _, g := range fleet {
		i := slices.IndexFunc(own, func(o palette.Group) bool { return o.Key == g.Key })
		if i < 0 {
			own = append(own, g)
			continue
		}
		for _, item := range g.Items {
			if !slices.ContainsFunc(own[i].Items, func(o palette.Item) bool { return o.ID == item.ID }) {
				own[i].Items = append(own[i].Items, item)
			}
		}
	}
	return own
}

// own are the GPUs, VMs and models that match.
func (h searchPages) own(r *request, text string, limit int) ([]palette.Group, error) {
	p, err := h.found(r, text, limit)
	if err != nil {
		return nil, err
	}
	var gpus, machines, models []palette.Item
	for _, g := range p.GPUs {
		gpus = append(gpus, palette.Item{Icon: components.IconGPU, Name: g.Name, Detail: g.Model + " " + g.Zone, URL: urls.GPU(g.ID), ID: string(g.ID)})
	}
	for _, v := range p.Machines {
		machines = append(machines, palette.Item{Icon: components.IconVM, Name: v.Name, Detail: v.Type + " " + v.Zone, URL: urls.VM(v.ID), ID: string(v.ID)})
	}
	for _, m := range p.Models {
		models = append(models, palette.Item{Icon: components.IconCatalog, Name: m.ID, Detail: components.Memory(r.ctx(), m.Memory), URL: urls.Model(m.ID), ID: m.ID})
	}
	var groups []palette.Group
	for _, g := range []palette.Group{{Key: "gpu", Items: gpus}, {Key: "vm", Items: machines}, {Key: "model", Items: models}} {
		if len(g.Items) > 0 {
			groups = append(groups, g)
		}
	}
	return groups, nil
}

var hitIcons = map[string]components.Icon{
	"account": components.IconUser, "host": components.IconHost, "card": components.IconChip, "gpu": components.IconGPU, "vm": components.IconVM,
}

// fleetGroups put hits of one kind together, in their order.
func fleetGroups(hits []fleet.Hit) []palette.Group {
	var groups []palette.Group
	for _, hit := range hits {
		if n := len(groups); n == 0 || groups[n-1].Key != hit.Kind {
			groups = append(groups, palette.Group{Key: hit.Kind})
		}
		last := &groups[len(groups)-1]
		last.Items = append(last.Items, palette.Item{
			Icon: hitIcons[hit.Kind], Name: hit.Name, Detail: hit.Detail, URL: hitURL(hit), ID: hit.ID,
		})
	}
	return groups
}

// hitURL is where operators see a hit: somebody's GPU on its card's page, a VM
// on its host's.
func hitURL(hit fleet.Hit) string {
	switch hit.Kind {
	case "account":
		return urls.AdminAccount(hit.Account)
	case "card", "gpu":
		return urls.Card(hit.Card)
	}
	return urls.Host(hit.Host)
}
