package components

import (
	"context"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"berth/services"
	"berth/web/i18n"
)

// Sentence is a broken rule in words: the text "error.<code>", or
// "error.<code>.<limit>", with the rule's arguments.
func Sentence(ctx context.Context, v services.Violation) string {
	key := "error." + string(v.Code)
	switch {
	case v.Limit != "":
		key += "." + string(v.Limit)
	case v.Code == services.CodeVMSpecsMismatch:
		key += ".any" // an operation remembers the code alone
	case v.Code == services.CodeQuotaExceeded:
		key += ".gpus"
	}
	args := make(map[string]any, len(v.Args))
	for name, value := range v.Args {
		if value != 0 || v.Code != services.CodeNoCardOnHost { // none elsewhere is not worth a number
			args[name] = value
		}
	}
	if state, ok := args["State"].(string); ok && services.GPUState(state).Valid() {
		args["State"] = i18n.T(ctx, "state."+state)
	} else if services.CardCondition(state).Valid() {
		args["State"] = i18n.T(ctx, "condition."+state)
	}
	if !i18n.Has(ctx, key) {
		return i18n.T(ctx, "error.unknown", "Code", string(v.Code))
	}
	return i18n.Text(ctx, key, args)
}

// Reasons are broken rules in one line; empty where none is broken.
func Reasons(ctx context.Context, broken []services.Violation) string {
	sentences := make([]string, 0, len(broken))
	for _, v := range broken {
		sentences = append(sentences, Sentence(ctx, v))
	}
	return strings.Join(sentences, " ")
}

// Of gives the first sentence about a field, empty where none is.
func Of(ctx context.Context, broken []services.Violation, field string) string {
	for _, v := range broken {
		if v.Field == field {
			return Sentence(ctx, v)
		}
	}
	return ""
}

// fieldLabel names a form field, empty where the rule is about the whole form
// or the form has no label for it.
func fieldLabel(ctx context.Context, field string) string {
	key := "field." + strings.ReplaceAll(field, "_", "-")
	if field == "" || !i18n.Has(ctx, key) {
		return ""
	}
	return i18n.T(ctx, key)
}

// Field is an input of a form.
type Field struct {
	Name     string // as posted; also the element's id, where Form is empty
	Form     string // of a page with several forms that have such a field: begins the id
	Label    string
	Hint     string // how to fill it in; empty: none
	Value    string
	Error    string // the sentence about it, from Of; empty: none
	Type     string // of an input; empty: text
	Required bool
	Optional bool // says so beside the label
	Complete string
	Max      int // characters; 0: any number
	Mono     bool
	Numeric  bool // a whole number: keyboards on screens show digits
}

// Within is the field in one of several forms of a page.
func (f Field) Within(form string) Field {
	f.Form = form
	return f
}

func (f Field) id() string {
	if f.Form == "" {
		return f.Name
	}
	return f.Form + "-" + f.Name
}

// described lists the elements that say more about the field.
func (f Field) described() string {
	var ids []string
	if f.Error != "" {
		ids = append(ids, f.id()+"-error")
	}
	if f.Hint != "" {
		ids = append(ids, f.id()+"-hint")
	}
	return strings.Join(ids, " ")
}

func (f Field) inputType() string {
	if f.Type == "" {
		return "text"
	}
	return f.Type
}

// Option is a choice of a select or of a list of radio buttons. An impossible
// one stays visible, with the reason.
type Option struct {
	Value    string
	Label    string
	Detail   string // a second line
	Reason   string // why it is impossible; empty: it is possible
	Selected bool
}

func (o Option) possible() bool { return o.Reason == "" }

// attributes that both inputs and selects have.
func (f Field) attributes() templ.Attributes {
	a := templ.Attributes{}
	if f.Required {
		a["required"] = true
	}
	if f.Error != "" {
		a["aria-invalid"] = "true"
	}
	if ids := f.described(); ids != "" {
		a["aria-describedby"] = ids
	}
	if f.Complete != "" {
		a["autocomplete"] = f.Complete
	}
	if f.Numeric {
		a["inputmode"] = "numeric"
	}
	if f.Max > 0 {
		a["maxlength"] = strconv.Itoa(f.Max)
	}
	return a
}

func violationAttributes(v services.Violation) templ.Attributes {
	a := templ.Attributes{}
	if v.Limit != "" {
		a["data-limit"] = string(v.Limit)
	}
	if v.Field != "" {
		a["data-field"] = v.Field
	}
	return a
}
