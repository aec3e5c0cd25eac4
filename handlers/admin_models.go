package handlers

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"berth/services"
	"berth/services/catalog"
	"berth/services/fleet"
	"berth/web/admin/models"
	"berth/web/urls"
)

// catalogEditor is the catalogue for those who change it.
type catalogEditor interface {
	Catalogue(ctx context.Context) (fleet.Catalogue, error)
	SaveModel(ctx context.Context, a services.Actor, m catalog.Model, version string) error
	DeleteModel(ctx context.Context, a services.Actor, id string) error
	SaveOffer(ctx context.Context, a services.Actor, in fleet.NewOffer) ([]fleet.Misfit, error)
	SaveType(ctx context.Context, a services.Actor, t catalog.VMType, version string) error
	DeleteType(ctx context.Context, a services.Actor, name string) error
}

// modelPages edit the catalogue.
type modelPages struct{ catalog catalogEditor }

func (s *site) models() modelPages { return modelPages{s.Fleet} }

func (h modelPages) index(r *request) error {
	c, err := h.catalog.Catalogue(r.ctx())
	if err != nil {
		return err
	}
	x := models.Index{Regions: c.Regions}
	if x.Shell, err = r.shell(); err != nil {
		return err
	}
	for _, m := range c.Models {
		row := models.Model{ID: m.ID, Memory: m.Memory, PCIIDs: m.PCIIDs}
		for _, o := range c.Offers {
			if o.Model == m.ID {
				row.Offers = append(row.Offers, models.Offer{Region: o.Region, Limits: models.Limits(r.ctx(), o), HourlyPrice: o.HourlyPrice})
			}
		}
		x.Models = append(x.Models, row)
	}
	for _, t := range c.Types {
		x.Types = append(x.Types, models.Type{
			Name: t.Name, VCores: t.VCores, MemoryMiB: t.MemoryMiB, Generation: t.Generation, GPUModel: t.GPUModel, GPUCount: t.GPUCount, HourlyPrice: t.HourlyPrice,
		})
	}
	return r.render(http.StatusOK, models.IndexView(x))
}

func (h modelPages) newModel(r *request) error {
	return h.showModel(r, http.StatusOK, models.ModelForm{New: true, Fields: map[string]string{}})
}

func (h modelPages) model(r *request) error {
	c, err := h.catalog.Catalogue(r.ctx())
	if err != nil {
		return err
	}
	m, known := c.Model(r.Param("model"))
	if !known {
		return services.NotFound("model", r.Param("model"))
	}
	return h.showModel(r, http.StatusOK, modelForm(c, m))
}

func (h modelPages) showModel(r *request, status int, f models.ModelForm) error {
	var err error
	if f.Shell, err = r.shell(); err != nil {
		return err
	}
	return r.render(status, models.ModelView(f))
}

// modelForm is a model's form as it is, with one for its offer in each region.
func modelForm(c fleet.Catalogue, m catalog.Model) models.ModelForm {
	f := models.ModelForm{ID: m.ID, Version: fleet.Version(m), Fields: map[string]string{
		"architecture": m.Architecture, "memory_gb": digits(m.Memory.GB), "memory_type": m.Memory.Type, "vram": digits(m.VRAMMiB), "int8": digits(m.INT8TOPS),
		"use_cases": strings.Join(m.UseCases, ", "), "resource_name": m.ResourceName, "driver_branch": m.DriverBranch, "pci_ids": strings.Join(m.PCIIDs, ", "),
	}}
	for _, region := range c.Regions {
		o, offered := c.Offer(m.ID, region)
		f.Offers = append(f.Offers, models.OfferForm{Region: region, Offered: offered, Version: fleet.Version(o), Fields: map[string]string{
			"max_vcores": digits(o.MaxVCores), "max_memory": gib(o.MaxMemoryMiB), "generations": strings.Join(o.Generations, ", "), "hourly_price": o.HourlyPrice,
		}})
	}
	return f
}

func digits(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func gib(mib int) string {
	if mib == 0 {
		return ""
	}
	return catalog.GiB(mib)
}

// numbers reads whole numbers of a form; what is none is noted.
type numbers struct {
	form
	broken []services.Violation
}

func (n *numbers) whole(field string) int {
	text := n.text(field)
	if text == "" {
		return 0
	}
	v, err := strconv.Atoi(text)
	if err != nil {
		n.wrong(field, text)
	}
	return v
}

// memory reads gibibytes as mebibytes.
func (n *numbers) memory(field string) int {
	text := strings.ReplaceAll(n.text(field), ",", ".")
	if text == "" {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v != v || v < -1 || v > 1<<20 {
		n.wrong(field, text)
		return 0
	}
	return int(v * 1024)
}

func (n *numbers) wrong(field, text string) {
	n.broken = append(n.broken, services.Invalid(field, services.CodeInvalidValue, map[string]any{"Value": text, "Allowed": "0, 1, 2, ..."}).Violations...)
}

func (n *numbers) err() error {
	if len(n.broken) == 0 {
		return nil
	}
	return &services.Error{Kind: services.KindInvalid, Violations: n.broken}
}

// list reads words separated by commas.
func (f form) list(field string) []string {
	out := []string{}
	for part := range strings.SplitSeq(f.Get(field), ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

var modelFields = []string{"id", "architecture", "memory_gb", "memory_type", "vram", "int8", "use_cases", "resource_name", "driver_branch", "pci_ids"}

func typed(f form, names []string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		out[n] = f.Get(n)
	}
	return out
}

func (h modelPages) addModel(r *request) error { return h.saveModel(r, "") }

func (h modelPages) changeModel(r *request) error { return h.saveModel(r, r.Param("model")) }

func (h modelPages) saveModel(r *request, id string) error {
	f, err := r.form()
	if err != nil {
		return err
	}
	n := numbers{form: f}
	m := catalog.Model{
		ID: id, Architecture: f.text("architecture"), VRAMMiB: n.whole("vram"), Memory: catalog.Memory{GB: n.whole("memory_gb"), Type: f.text("memory_type")},
		INT8TOPS: n.whole("int8"), UseCases: f.list("use_cases"), ResourceName: f.text("resource_name"), DriverBranch: f.text("driver_branch"),
	}
	for _, p := range f.list("pci_ids") {
		m.PCIIDs = append(m.PCIIDs, strings.ToLower(p))
	}
	if id == "" {
		m.ID = f.text("id")
	}
	if err = n.err(); err == nil {
		err = h.catalog.SaveModel(r.ctx(), r.actor(), m, f.text("version"))
	}
	return r.answer(err, urls.AdminModel(m.ID), func(status int, broken []services.Violation) error {
		page := models.ModelForm{New: id == ""}
		if id != "" {
			c, err := h.catalog.Catalogue(r.ctx())
			if err != nil {
				return err
			}
			now, known := c.Model(id)
			if !known {
				return services.NotFound("model", id)
			}
			page = modelForm(c, now)
		}
		page.Fields, page.Broken, page.Version = typed(f, modelFields), broken, f.text("version")
		return h.showModel(r, status, page)
	})
}

func (h modelPages) deleteModel(r *request) error {
	id := r.Param("model")
	err := h.catalog.DeleteModel(r.ctx(), r.actor(), id)
	return r.answer(err, urls.AdminCatalog, func(status int, broken []services.Violation) error {
		c, err := h.catalog.Catalogue(r.ctx())
		if err != nil {
			return err
		}
		m, _ := c.Model(id)
		page := modelForm(c, m)
		page.Broken = broken
		return h.showModel(r, status, page)
	})
}

var offerFields = []string{"max_vcores", "max_memory", "generations", "hourly_price"}

func (h modelPages) saveOffer(r *request) error {
	f, err := r.form()
	if err != nil {
		return err
	}
	n := numbers{form: f}
	offered, err := f.flag("offered")
	if err != nil {
		return err
	}
	confirm, err := f.flag("confirm")
	if err != nil {
		return err
	}
	in := fleet.NewOffer{Offered: offered, Confirm: confirm, Version: f.text("version"), Offer: catalog.Offer{
		Model: r.Param("model"), Region: f.text("region"), MaxVCores: n.whole("max_vcores"), MaxMemoryMiB: n.memory("max_memory"),
		Generations: f.list("generations"), HourlyPrice: strings.ReplaceAll(f.text("hourly_price"), ",", "."),
	}}
	var misfits []fleet.Misfit
	if err = n.err(); err == nil {
		misfits, err = h.catalog.SaveOffer(r.ctx(), r.actor(), in)
	}
	return r.answer(err, urls.AdminModel(in.Model), func(status int, broken []services.Violation) error {
		return h.refusedOffer(r, status, f, in, broken, misfits)
	})
}

// refusedOffer shows the model's page with what was asked of one of its offers.
func (h modelPages) refusedOffer(r *request, status int, f form, in fleet.NewOffer, broken []services.Violation, misfits []fleet.Misfit) error {
	c, err := h.catalog.Catalogue(r.ctx())
	if err != nil {
		return err
	}
	m, known := c.Model(in.Model)
	if !known {
		return services.NotFound("model", in.Model)
	}
	page := modelForm(c, m)
	page.Broken = broken
	for i := range page.Offers {
		o := &page.Offers[i]
		if o.Region != in.Region {
			continue
		}
		o.Offered, o.Fields, o.Broken, o.Version = in.Offered, typed(f, offerFields), broken, in.Version
		for _, x := range misfits {
			o.Misfits = append(o.Misfits, models.Misfit{VM: x.VM, Name: x.Name, Account: x.Account, GPUs: x.GPUs, Broken: x.Broken})
		}
	}
	return h.showModel(r, status, page)
}

func (h modelPages) newType(r *request) error {
	return h.showType(r, http.StatusOK, models.TypeForm{New: true, Fields: map[string]string{}})
}

func (h modelPages) vmType(r *request) error {
	c, err := h.catalog.Catalogue(r.ctx())
	if err != nil {
		return err
	}
	t, known := c.Type(r.Param("name"))
	if !known {
		return services.NotFound("type", r.Param("name"))
	}
	return h.showType(r, http.StatusOK, typeForm(t))
}

func typeForm(t catalog.VMType) models.TypeForm {
	return models.TypeForm{Name: t.Name, Version: fleet.Version(t), Fields: map[string]string{
		"vcores": digits(t.VCores), "memory": gib(t.MemoryMiB), "generation": t.Generation, "gpu_model": t.GPUModel, "gpu_count": digits(t.GPUCount),
		"hourly_price": t.HourlyPrice,
	}}
}

func (h modelPages) showType(r *request, status int, f models.TypeForm) error {
	c, err := h.catalog.Catalogue(r.ctx())
	if err != nil {
		return err
	}
	for _, m := range c.Models {
		f.Models = append(f.Models, m.ID)
	}
	if f.Shell, err = r.shell(); err != nil {
		return err
	}
	return r.render(status, models.TypeView(f))
}

var typeFields = []string{"name", "vcores", "memory", "generation", "gpu_model", "gpu_count", "hourly_price"}

func (h modelPages) addType(r *request) error { return h.saveType(r, "") }

func (h modelPages) changeType(r *request) error { return h.saveType(r, r.Param("name")) }

func (h modelPages) saveType(r *request, name string) error {
	f, err := r.form()
	if err != nil {
		return err
	}
	n := numbers{form: f}
	t := catalog.VMType{
		Name: name, VCores: n.whole("vcores"), MemoryMiB: n.memory("memory"), Generation: f.text("generation"), Performance: catalog.Highest,
		GPUModel: f.text("gpu_model"), GPUCount: n.whole("gpu_count"), Named: true, HourlyPrice: strings.ReplaceAll(f.text("hourly_price"), ",", "."),
	}
	if name == "" {
		t.Name = f.text("name")
	}
	if err = n.err(); err == nil {
		err = h.catalog.SaveType(r.ctx(), r.actor(), t, f.text("version"))
	}
	return r.answer(err, urls.AdminCatalog, func(status int, broken []services.Violation) error {
		return h.showType(r, status, models.TypeForm{New: name == "", Name: name, Version: f.text("version"), Fields: typed(f, typeFields), Broken: broken})
	})
}

func (h modelPages) deleteType(r *request) error {
	name := r.Param("name")
	err := h.catalog.DeleteType(r.ctx(), r.actor(), name)
	return r.answer(err, urls.AdminCatalog, func(status int, broken []services.Violation) error {
		c, err := h.catalog.Catalogue(r.ctx())
		if err != nil {
			return err
		}
		t, _ := c.Type(name)
		page := typeForm(t)
		page.Broken = broken
		return h.showType(r, status, page)
	})
}
