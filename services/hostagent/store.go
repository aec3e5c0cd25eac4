package hostagent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"berth/services/hostagent/internal/atomicfile"
)

// Files of the state folder.
const (
	fileIdentity = "agent.pem" // key, certificate and CA of an enrolled agent
	fileEpoch    = "epoch"
)

// store is the state folder. Its files are readable by their owner alone.
type store struct {
	dir string
}

func openStore(dir string) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make state folder: %w", err)
	}
	return &store{dir: dir}, nil
}

func (s *store) path(name string) string { return filepath.Join(s.dir, name) }

// identity loads what enrolment left, or nil where there was none.
func (s *store) identity() (*identity, error) {
	text, err := os.ReadFile(s.path(fileIdentity))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("load identity: %w", err)
	}
	id, err := decodeIdentity(text)
	if err != nil {
		return nil, fmt.Errorf("load identity from %s: %w", s.path(fileIdentity), err)
	}
	return id, nil
}

func (s *store) keepIdentity(id *identity) error {
	text, err := id.encode()
	if err != nil {
		return err
	}
	if err := atomicfile.Write(s.path(fileIdentity), text); err != nil {
		return fmt.Errorf("keep identity: %w", err)
	}
	return nil
}

// nextEpoch keeps and returns an epoch larger than any before, and at least the
// given one.
func (s *store) nextEpoch(least int64) (int64, error) {
	text, err := os.ReadFile(s.path(fileEpoch))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("load epoch: %w", err)
	}
	// A file that does not hold a number counts as none: a stale answer from the
	// console corrects an epoch that is too small.
	former, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	epoch := max(least, former+1)
	if err := atomicfile.Write(s.path(fileEpoch), []byte(strconv.FormatInt(epoch, 10)+"\n")); err != nil {
		return 0, fmt.Errorf("keep epoch: %w", err)
	}
	return epoch, nil
}
