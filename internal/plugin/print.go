// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"reslice.dev/internal/dra"
	"reslice.dev/internal/gpu"
)

// Formats of [PrintSlices].
const (
	FormatYAML  = "yaml"
	FormatJSON  = "json"
	FormatTable = "table"
)

// PrintSlices writes what a node publishes: a v1 List of ResourceSlices as
// YAML or JSON, which kubectl create accepts, or a table for people.
func PrintSlices(w io.Writer, format string, n dra.Node, pools []dra.Pool) error {
	switch format {
	case FormatTable:
		return printTable(w, n, pools)
	case FormatYAML, FormatJSON:
		data, err := encode(format, dra.ResourceSlices(n, pools))
		if err != nil {
			return fmt.Errorf("encode ResourceSlices as %s: %w", format, err)
		}
		_, err = w.Write(data)
		return err
	}
	return ValidateFormat(format)
}

// ValidateFormat refuses a format that [PrintSlices] does not know.
func ValidateFormat(format string) error {
	switch format {
	case FormatYAML, FormatJSON, FormatTable:
		return nil
	}
	return fmt.Errorf("unknown format %q: write %s, %s or %s", format, FormatYAML, FormatJSON, FormatTable)
}

func encode(format string, slices []*resourceapi.ResourceSlice) ([]byte, error) {
	list := corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	for _, s := range slices {
		raw, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, runtime.RawExtension{Raw: raw})
	}
	if format == FormatYAML {
		return yaml.Marshal(list)
	}
	data, err := json.MarshalIndent(list, "", "  ")
	return append(data, '\n'), err
}

func printTable(w io.Writer, n dra.Node, pools []dra.Pool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	models := map[gpu.UUID]*gpu.Model{}
	for _, g := range n.GPUs {
		models[g.UUID] = g.Model
	}
	fmt.Fprintln(t, "POOL\tDEVICE\tTYPE\tPROFILE\tSHARING\tMEMORY\tSMS\tMEMORY SLICES")
	for _, p := range pools {
		for _, s := range p.Slices {
			for _, d := range s.Devices {
				printRow(t, p, d, models)
			}
		}
	}
	return t.Flush()
}

func printRow(w io.Writer, p dra.Pool, d resourceapi.Device, models map[gpu.UUID]*gpu.Model) {
	meaning := p.Devices[d.Name]
	text := func(name string) string {
		if v := d.Attributes[resourceapi.QualifiedName(name)].StringValue; v != nil {
			return *v
		}
		return "-"
	}
	// In one unit, so that a column can be compared.
	number := func(name string, unit int64, suffix string) string {
		if c, ok := d.Capacity[resourceapi.QualifiedName(name)]; ok {
			return fmt.Sprintf("%d%s", c.Value.Value()/unit, suffix)
		}
		return "-"
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, d.Name, text(dra.AttrType), text(dra.AttrProfile),
		text(dra.AttrSharing), number(dra.CapMemory, 1<<20, "Mi"), number(dra.CapMultiprocessors, 1, ""), memoryMap(models[meaning.GPU], meaning))
}

// memoryMap draws which memory slices a device takes.
func memoryMap(m *gpu.Model, d dra.Device) string {
	switch {
	case m == nil || d.Kind == dra.KindMonitor:
		return "-"
	case d.Kind == dra.KindGPU:
		return strings.Repeat("#", max(m.MemorySlices, 1))
	}
	at := d.Partition.Placement
	return strings.Repeat(".", at.Start) + strings.Repeat("#", at.Size) + strings.Repeat(".", max(0, m.MemorySlices-at.End()))
}
