package handlers

// Route is a line of the table, for tests that walk it.
type Route struct {
	Method, Path string
	May          string
}

// Routes lists the table for browsers.
func Routes() []Route {
	names := map[permission]string{
		anybody: "anybody", public: "public", signedIn: "signed in", reader: "reader", writer: "writer", operator: "operator",
	}
	var all []Route
	for _, r := range emptySite().table() {
		all = append(all, Route{r.method, r.path, names[r.may]})
	}
	return all
}
