package compute_test

import "flag"

// flagSet sets a flag of the test binary, as the command line would.
func flagSet(name, value string) error { return flag.Set(name, value) }
