// Renders the chart with Helm's template engine and the few functions it uses, where Helm is not installed:
// go run render.go CHART < values.json
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

func main() {
	var data map[string]any
	if err := json.NewDecoder(os.Stdin).Decode(&data); err != nil {
		fail(err)
	}
	data["Release"] = map[string]any{"Name": "demo", "Namespace": "default", "Service": "Helm"}
	data["Template"] = map[string]any{"BasePath": "templates"}
	all := template.New("chart").Option("missingkey=error")
	include := func(name string, given any) (string, error) {
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, filepath.Base(name), given)
		return out.String(), err
	}
	indent := func(by int, text string) string {
		pad := strings.Repeat(" ", by)
		return pad + strings.ReplaceAll(text, "\n", "\n"+pad)
	}
	all.Funcs(template.FuncMap{
		"include":    include,
		"indent":     indent,
		"nindent":    func(by int, text string) string { return "\n" + indent(by, text) },
		"quote":      func(value any) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
		"int":        func(value float64) int { return int(value) },
		"required": func(why string, value any) (any, error) {
			if value == nil || value == "" {
				return nil, fmt.Errorf("%s", why)
			}
			return value, nil
		},
		"mul":        func(a, b float64) int { return int(a * b) },
		"trunc":      func(most int, text string) string { return text[:min(most, len(text))] },
		"trimSuffix": func(end, text string) string { return strings.TrimSuffix(text, end) },
		"toYaml": func(value any) (string, error) {
			// JSON is YAML.
			text, err := json.Marshal(value)
			return string(text), err
		},
		"sha256sum": func(text string) string {
			sum := sha256.Sum256([]byte(text))
			return hex.EncodeToString(sum[:])
		},
	})
	files, err := filepath.Glob(filepath.Join(os.Args[1], "templates", "*"))
	if err != nil {
		fail(err)
	}
	if _, err := all.ParseFiles(files...); err != nil {
		fail(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".yaml") {
			fmt.Println("---")
			if err := all.ExecuteTemplate(os.Stdout, filepath.Base(file), data); err != nil {
				fail(err)
			}
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
