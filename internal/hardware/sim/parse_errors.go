// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// plainer says what a person has to write where the JSON package speaks of Go
// types.
func plainer(err error) error {
	var typed *json.UnmarshalTypeError
	if !errors.As(err, &typed) {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if typed.Field == "" {
		return fmt.Errorf("it is a JSON %s, write an object", typed.Value)
	}
	return fmt.Errorf("%q cannot be a JSON %s", typed.Field, typed.Value)
}

// placeOf is ", line N" for an error of the JSON package, or "" where it does
// not tell.
func placeOf(data []byte, err error) string {
	at := -1
	var typed *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch _, field, unknown := strings.Cut(err.Error(), "unknown field "); {
	case errors.As(err, &typed):
		at = int(typed.Offset)
	case errors.As(err, &syntax):
		at = int(syntax.Offset)
	case unknown: // the package only names it
		at = bytes.Index(data, []byte(field))
	}
	if at < 0 || at > len(data) {
		return ""
	}
	return fmt.Sprintf(", line %d", 1+bytes.Count(data[:at], []byte("\n")))
}
