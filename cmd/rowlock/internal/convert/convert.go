// Package convert is the command that converts manifests between API versions.
package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/server/convert"
	"github.com/rowlock/rowlock/server/kinds/builtin"
)

// convertOptions are the flags of convert, with the names that kubectl-convert has for them.
type convertOptions struct {
	files      []string
	recursive  bool
	version    string
	output     string
	kubeconfig string
	context    string
	in         io.Reader
	warn       io.Writer
}

func Command() *cobra.Command {
	o := &convertOptions{}
	cmd := &cobra.Command{
		Use:   "convert -f FILE",
		Short: "Convert manifests between API versions, including versions that are no longer served",
		Long: `Convert manifests between API versions.

The result has the version of --output-version if the kind exists in it, otherwise the
preferred version of a server. Versions that release 1.32 no longer serves can be read
and written, too.

Custom resources are converted by their definitions on the server of --kubeconfig, and
by their conversion webhooks.

A link named kubectl-convert to this program makes it a plugin: kubectl convert -f FILE.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.in, o.warn = cmd.InOrStdin(), cmd.ErrOrStderr()
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&o.files, "filename", "f", nil, "file or folder with manifests, - for standard input; may be repeated")
	f.BoolVarP(&o.recursive, "recursive", "R", false, "look into folders of folders")
	f.StringVar(&o.version, "output-version", "", "GROUP/VERSION to convert to (default: the preferred version of a server)")
	f.StringVarP(&o.output, "output", "o", "yaml", "yaml or json")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the server that has the definitions of custom resources")
	f.StringVar(&o.context, "context", "", "context of --kubeconfig")
	f.Bool("local", true, "no effect: only --kubeconfig makes the command contact a server")
	f.String("validate", "", "no effect: the command always reports unknown fields")
	_, _ = f.MarkHidden("local"), f.MarkHidden("validate")
	return cmd
}

func (o *convertOptions) run(ctx context.Context, out io.Writer) error {
	if len(o.files) == 0 {
		return errors.New("must specify one of -f and -k")
	}
	if o.output != "yaml" && o.output != "json" {
		return fmt.Errorf("--output %q: want yaml or json", o.output)
	}
	to, err := schema.ParseGroupVersion(o.version)
	if err != nil {
		return fmt.Errorf("--output-version: %w", err)
	}
	c := convert.New(builtin.Config{Feature: func(string) bool { return true }}.All())
	c.Warn = func(text string) { fmt.Fprintln(o.warn, "Warning: "+text) }
	if o.kubeconfig != "" {
		server, err := newDefinitions(o.kubeconfig, o.context)
		if err != nil {
			return err
		}
		c.Definitions = server.find
	}
	var converted []any
	for _, name := range o.files {
		err := o.manifests(name, func(from string, obj convert.Object) error {
			done, err := c.Convert(ctx, obj, to)
			if err != nil {
				return fmt.Errorf("%s: %w", from, err)
			}
			converted = append(converted, done)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return o.write(out, converted)
}

// write writes one object as it is, and several as a List, as kubectl does.
func (o *convertOptions) write(out io.Writer, list []any) error {
	var all any
	switch len(list) {
	case 0:
		return errors.New("no objects passed to convert")
	case 1:
		all = list[0]
	default:
		all = convert.Object{"apiVersion": "v1", "kind": "List", "metadata": convert.Object{}, "items": list}
	}
	data, err := json.MarshalIndent(all, "", "    ")
	if err == nil && o.output == "yaml" {
		data, err = yaml.JSONToYAML(data)
	} else if err == nil {
		data = append(data, '\n')
	}
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

// manifests calls do for each object of a file, of a folder, or of standard input.
func (o *convertOptions) manifests(name string, do func(from string, obj convert.Object) error) error {
	if name == "-" {
		return readManifests(o.in, func(obj convert.Object) error { return do("standard input", obj) })
	}
	return filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != name && !o.recursive:
			return fs.SkipDir
		case entry.IsDir() || path != name && !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return readManifests(f, func(obj convert.Object) error { return do(path, obj) })
	})
}

// readManifests calls do for each object of YAML documents or JSON texts; of lists, for
// each item.
func readManifests(in io.Reader, do func(convert.Object) error) error {
	d := utilyaml.NewYAMLOrJSONDecoder(in, 4096)
	for {
		var obj convert.Object
		if err := d.Decode(&obj); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if len(obj) == 0 {
			continue
		}
		kind, _ := obj["kind"].(string)
		items, isList := obj["items"].([]any)
		if !isList || !strings.HasSuffix(kind, "List") {
			if err := do(obj); err != nil {
				return err
			}
			continue
		}
		for i, item := range items {
			one, ok := item.(convert.Object)
			if !ok {
				return fmt.Errorf("items[%d] is not an object", i)
			}
			if one["kind"] == nil && kind != "List" { // optional in items of a typed list
				one["apiVersion"], one["kind"] = obj["apiVersion"], strings.TrimSuffix(kind, "List")
			}
			if err := do(one); err != nil {
				return err
			}
		}
	}
}
