package signin_test

import (
	"testing"

	"berth/services"
	"berth/web/signin"
	"berth/web/webtest"
)

func TestFormHasTheContractsFields(t *testing.T) {
	doc := webtest.Both(t, signin.View(signin.Page{Frame: webtest.Frame(), Next: "/gpus"}))
	form := doc.Find(`form[method=post][action="/login"]`)
	for _, field := range []string{"email", "password", "next"} {
		if form.Find(`[name="`+field+`"]`).Length() != 1 {
			t.Errorf("the form has no field %s", field)
		}
	}
	if doc.Find(`form[action="/session/locale"]`).Length() == 0 {
		t.Error("the language cannot be switched")
	}
}

func TestRefusalKeepsTheEmailAndNamesTheRule(t *testing.T) {
	doc := webtest.Both(t, signin.View(signin.Page{
		Frame: webtest.Frame(), Email: `"><b>@lab.test`,
		Broken: []services.Violation{{Code: services.CodeBadCredentials}},
	}))
	if got := doc.Find("#email").AttrOr("value", ""); got != `"><b>@lab.test` {
		t.Errorf("e-mail is %q", got)
	}
	if got := webtest.Text(doc.Find(`[data-error="bad-credentials"]`)); got != "E-mail or password is wrong." {
		t.Errorf("the refusal says %q", got)
	}
}
