// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"
)

// print runs the program and returns what a person sees.
func print(args ...string) (stdout, stderr string, err error) {
	var out, errOut bytes.Buffer
	err = run(context.Background(), append([]string{"print-slices"}, args...), &out, &errOut)
	return out.String(), errOut.String(), err
}

// TestGoldenOutput pins what people and the API server get; run with -rewrite
// and read the diff.
func TestGoldenOutput(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, notes, err := print(append([]string{"--hardware=sim", "--node-name=node-a"}, strings.Fields(d.Input)...)...)
			if err != nil {
				return notes + "error: " + err.Error() + "\n"
			}
			return notes + out
		})
	})
}

func TestPrintedListsReadBackAsResourceSlices(t *testing.T) {
	for _, format := range []string{"yaml", "json"} {
		out, _, err := print("--hardware=sim", "--sim-model=h100-80gb,t4-16gb", "--sim-gpus=16", "--node-name=node-a", "--mig=dynamic", "--sharing=all", "-o", format)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			APIVersion string            `json:"apiVersion"`
			Kind       string            `json:"kind"`
			Items      []json.RawMessage `json:"items"`
		}
		if err := yaml.Unmarshal([]byte(out), &list); err != nil {
			t.Fatal(err)
		}
		if list.APIVersion != "v1" || list.Kind != "List" || len(list.Items) != 32 {
			t.Fatalf("%s: %s %s of %d", format, list.APIVersion, list.Kind, len(list.Items))
		}
		for _, raw := range list.Items {
			var s resourceapi.ResourceSlice
			if err := yaml.UnmarshalStrict(raw, &s); err != nil || s.Kind != "ResourceSlice" || s.APIVersion != "resource.k8s.io/v1" {
				t.Fatalf("%s: %v in %s", format, err, s.Name)
			}
		}
	}
}

func TestMistakesSayWhatToWrite(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	sim := []string{"--hardware=sim", "--node-name=node-a"}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"hardware":         {[]string{"--hardware=gpu"}, "--hardware=sim"},
		"model":            {append(sim, "--sim-model=h100"), "h100-80gb"},
		"no GPUs":          {append(sim, "--sim-gpus=0"), "1 to 16"},
		"too many GPUs":    {append(sim, "--sim-gpus=17"), "1 to 16"},
		"mig":              {append(sim, "--mig=yes"), "on, off or dynamic"},
		"sharing":          {append(sim, "--sharing=mps"), "none, gpu, mig or all"},
		"format":           {append(sim, "-o=xml"), "yaml, json or table"},
		"node name":        {append(sim, "--node-name=Node A"), "lower case"},
		"driver name":      {append(sim, "--driver-name=UPPER"), "gpu.reslice.dev"},
		"mix":              {append(sim, "--mix=5g=1"), "1g.10gb"},
		"argument":         {append(sim, "nonsense"), "takes no arguments"},
		"flag":             {append(sim, "--gpus=8"), "print-slices --help"},
		"number":           {append(sim, "--sim-gpus=many"), `"many" is no int`},
		"models":           {append(sim, "--sim-gpus=1", "--sim-model=h100-80gb,t4-16gb"), "--sim-gpus=2"},
		"no --hardware":    {[]string{"--node-name=node-a", "--sim-gpus=2"}, "--hardware=sim"},
		"no node name":     {append(sim, "--node-name="), "node-a"},
		"empty state":      {append(sim, "--sim-state="), "name of a file"},
		"missing state":    {append(sim, "--sim-state="+broken+".missing"), "print-sim-state >"},
		"a folder":         {append(sim, "--sim-state="+filepath.Dir(broken)), "no regular file"},
		"broken state":     {append(sim, "--sim-state="+broken), "simulator state"},
		"state and models": {append(sim, "--sim-state="+broken, "--sim-gpus=2"), "leave out"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := print(tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want it to say %q", err, tc.want)
			}
		})
	}
}

// TestAStateFileMakesTheRoundTrip: what print-sim-state writes is what
// --sim-state reads, and nothing is left beside it.
func TestAStateFileMakesTheRoundTrip(t *testing.T) {
	var state bytes.Buffer
	args := []string{"print-sim-state", "--sim-model=a100-40gb, t4-16gb", "--sim-gpus=2", "--mig=on", "--node-name=node-a"}
	if err := run(context.Background(), args, &state, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(path, state.Bytes(), 0o400); err != nil {
		t.Fatal(err)
	}
	fromFile, _, err := print("--hardware=sim", "--sim-state="+path) // the file knows its node
	if err != nil {
		t.Fatal(err)
	}
	fresh, _, err := print("--hardware=sim", "--node-name=node-a", "--sim-model=a100-40gb,t4-16gb", "--sim-gpus=2", "--mig=on")
	if err != nil || fresh != fromFile {
		t.Errorf("the file gives other GPUs (%v)", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestMistakesOfTheOtherCommandsSayWhatToWrite(t *testing.T) {
	for want, args := range map[string][]string{
		"print-slices":         {"nonsense"},
		"on or off":            {"print-sim-state", "--mig=dynamic"},
		"lower case":           {"print-sim-state", "--node-name=A"},
		"takes no arguments":   {"print-sim-state", "x"},
		"none of t4-16gb":      {"print-sim-state", "--node-name=a", "--sim-model=t4-16gb", "--mig=on"},
		"h100-80gb, h100-94gb": {"print-sim-state", "--node-name=a", "--sim-model=x"},
	} {
		if err := run(context.Background(), args, &bytes.Buffer{}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want it to say %q", args, err, want)
		}
	}
}

// FuzzPrintSlices: no input makes the program panic.
func FuzzPrintSlices(f *testing.F) {
	f.Add("h100-80gb", 8, "node-a", "on", "all", "1g=50,whole=5", "yaml", "gpu.reslice.dev", []byte(nil))
	f.Add("a30-24gb,t4-16gb", 1, "n", "dynamic", "none", "", "table", "x", []byte(`{"version":1}`))
	f.Add("", -1, "", "x", "", "=", "", "", []byte("{"))
	var real bytes.Buffer
	if err := run(context.Background(), []string{"print-sim-state", "--sim-gpus=1", "--mig=on", "--node-name=a"}, &real, &bytes.Buffer{}); err != nil {
		f.Fatal(err)
	}
	f.Add("", 0, "node-a", "", "mig", "1g=1", "json", "gpu.reslice.dev", real.Bytes())
	f.Fuzz(func(t *testing.T, model string, gpus int, node, mig, sharing, mix, format, driver string, state []byte) {
		args := []string{"--hardware=sim", "--node-name=" + node, "--mig=" + mig, "--sharing=" + sharing, "--mix=" + mix, "-o=" + format, "--driver-name=" + driver}
		if len(state) == 0 { // the engine never hands out nil
			args = append(args, "--sim-model="+model, "--sim-gpus="+strings.TrimSpace(jsonNumber(gpus)))
		} else {
			path := filepath.Join(t.TempDir(), "state.json")
			if err := os.WriteFile(path, state, 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, "--sim-state="+path)
		}
		if out, _, err := print(args...); err == nil && out == "" {
			t.Error("success without output")
		}
	})
}

func jsonNumber(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}
