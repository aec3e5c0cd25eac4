package libvirt

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"berth/services/hostagent/pci"
)

// namespace marks the metadata of the domains that Berth made.
const (
	namespace = "urn:berth:agent:1"
	prefix    = "berth"
)

// note is what a domain's metadata keeps of a VM.
type note struct {
	XMLName xml.Name
	Xmlns   string `xml:"xmlns:berth,attr,omitempty"`
	// Run and Reboots were last carried out. Starting is the run of a start that
	// was begun; it counts once the domain runs.
	Run      int64 `xml:"run,attr"`
	Reboots  int64 `xml:"reboots,attr"`
	Starting int64 `xml:"starting,attr,omitempty"`
	// Stopping is the run that the console told to stop.
	Stopping int64 `xml:"stopping,attr,omitempty"`
	// Ended is by whom the last run ended, once that was seen: libvirt forgets
	// it when it is restarted.
	Ended string      `xml:"ended,attr,omitempty"`
	Cards []notedCard `xml:"card"`
}

// notedCard is a card in a VM's definition.
type notedCard struct {
	Key       string        `xml:"key,attr"`
	Functions []pci.Address `xml:"function"`
}

func (n *note) has(key string) bool {
	for _, c := range n.Cards {
		if c.Key == key {
			return true
		}
	}
	return false
}

// element writes a note as it stands in a definition, in a namespace of its own.
func (n note) element() (string, error) {
	n.XMLName, n.Xmlns = xml.Name{Local: prefix + ":vm"}, namespace
	return n.marshal()
}

// bare writes a note without the namespace, which libvirt adds by itself where
// metadata alone is changed.
func (n note) bare() (string, error) {
	n.XMLName, n.Xmlns = xml.Name{Local: "vm"}, ""
	return n.marshal()
}

func (n note) marshal() (string, error) {
	raw, err := xml.Marshal(n)
	if err != nil {
		return "", fmt.Errorf("encode what is kept of a VM: %w", err)
	}
	return string(raw), nil
}

// splitMetadata finds the note among a domain's metadata, and gives the rest as
// it is. A nil note: there is none.
func splitMetadata(inner string) (n *note, rest string, err error) {
	d := xml.NewDecoder(strings.NewReader(inner))
	for {
		from := d.InputOffset()
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil, inner, nil
		}
		if err != nil {
			return nil, "", fmt.Errorf("read metadata: %w", err)
		}
		start, ok := token.(xml.StartElement)
		switch {
		case !ok:
		case start.Name.Space != namespace:
			err = d.Skip()
		default:
			n = &note{}
			if err = d.DecodeElement(n, &start); err == nil {
				return n, inner[:from] + inner[d.InputOffset():], nil
			}
		}
		if err != nil {
			return nil, "", fmt.Errorf("read metadata: %w", err)
		}
	}
}
