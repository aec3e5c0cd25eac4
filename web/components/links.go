package components

import (
	"strings"

	"github.com/a-h/templ"
)

// Main is the element that holds a page's content, and that enhanced links and
// forms replace.
const Main = "#main"

// Within makes an anchor that shows the same page otherwise: filtered, sorted.
// With JavaScript only the content moves; scroll, focus and what is open stay
// as they are. Links to other pages are plain anchors.
//
//	<a { components.Within(urls.GPUs(q))... }>
func Within(url string) templ.Attributes {
	return templ.Attributes{
		"href": url, "hx-get": url, "hx-target": Main, "hx-select": Main,
		"hx-swap": "outerMorph", "hx-push-url": "true",
	}
}

// Onward is Within for the next page of a list: it begins at the top.
func Onward(url string) templ.Attributes {
	a := Within(url)
	a["hx-swap"] = "outerMorph show:top"
	return a
}

// Filter makes a form that narrows a list: method GET, applied at each change.
func Filter(action string) templ.Attributes {
	return templ.Attributes{
		"method": "get", "action": action, "hx-get": action, "hx-target": Main, "hx-select": Main,
		"hx-swap": "outerMorph", "hx-push-url": "true", "hx-sync": "this:replace",
		"hx-trigger": "submit, change, input changed delay:300ms from:'find input[type=search]'",
	}
}

// Post makes a form that leads to the page of another object: a plain one.
func Post(action string) templ.Attributes {
	return templ.Attributes{"method": "post", "action": action}
}

// PostHere makes a form that changes the object whose page it stands on. The
// answer, also a refusal, becomes the page's content; the URL stays.
func PostHere(action string) templ.Attributes {
	return templ.Attributes{
		"method": "post", "action": action, "hx-post": action, "hx-target": Main, "hx-select": Main,
		"hx-swap": "outerMorph", "hx-disable": "find button[type=submit]",
	}
}

// PostAway makes a form that leads to another page when it succeeds. A refusal
// keeps the form and the URL.
func PostAway(action string) templ.Attributes {
	a := PostHere(action)
	a["hx-push-url"] = "true"
	a["hx-status:4xx"] = "push:false"
	return a
}

// Narrowing makes a form fetch its answer to what is filled in so far: the
// fragment is put in the place of target at each change.
func Narrowing(fragment, target string) templ.Attributes {
	return templ.Attributes{
		"hx-get": fragment, "hx-target": target, "hx-swap": "outerMorph", "hx-include": "closest form",
		"hx-trigger": "change, input changed delay:200ms", "hx-sync": "this:replace",
	}
}

// Events are the names under which the live stream announces changes. One that
// is about a single object has its id behind: GPUEvent, VMEvent.
const (
	EventGPUs     = "gpus"
	EventVMs      = "vms"
	EventActivity = "activity"
	EventCatalog  = "catalog"
	EventFleet    = "fleet"
	// EventOperations is about operations of any account, for operators.
	EventOperations = "operations"

	// EventRefresh asks for everything anew: something may have been missed.
	EventRefresh = "refresh"
	// EventTick says that the server is there. It is sent when the stream opens
	// and every 15 seconds at least: after 40 seconds of silence the page shows
	// that it lost touch.
	EventTick = "tick"
	// EventSessionEnded leads back to the sign-in.
	EventSessionEnded = "session-ended"
)

// GPUEvent announces a change of one GPU.
func GPUEvent(id string) string { return "gpu-" + id }

// VMEvent announces a change of one VM.
func VMEvent(id string) string { return "vm-" + id }

// Region is a part of a page that changes by itself.
type Region struct {
	ID       string   // of its element
	Fragment string   // the URL that answers with the same element
	Events   []string // what it changes with
	Class    string
}

func (r Region) trigger() string {
	specs := make([]string, 0, len(r.Events)+1)
	for _, e := range append(r.Events, EventRefresh) {
		if e != "" {
			specs = append(specs, e+" from:body throttle:150ms")
		}
	}
	return strings.Join(specs, ", ")
}

// attributes of a region's element. A refusal, e.g. since the object is gone,
// is a whole page and takes the place of the content.
func (r Region) attributes() templ.Attributes {
	return templ.Attributes{
		"hx-get": r.Fragment, "hx-trigger": r.trigger(), "hx-swap": "outerMorph",
		"hx-status:4xx": "select:" + Main + " target:" + Main,
	}
}
