package artifact

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ptah.run/ptah/operator/plan/report"
)

func TestDeclaredRowsTravelWithTheSchema(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"001.sql": "CREATE TABLE a();", "a.rows.yaml": "version: 1", "notes.yaml": "x", "values.rows.yml": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := ReadFiles(dir)
	if err != nil || len(files) != 2 || files[1].Name != "a.rows.yaml" {
		t.Fatalf("%+v %v", files, err)
	}
	b := newBench(t, false)
	c := b.client(t, Access{PlainHTTP: true})
	info, err := c.Push(t.Context(), b.ref(t, ":rows"), files, nil)
	if err != nil {
		t.Fatal(err, Detail(err))
	}
	if layers := info.manifest.Layers; string(layers[0].MediaType) != SchemaLayerType || string(layers[1].MediaType) != RowsLayerType {
		t.Errorf("%+v", layers)
	}
	_, fetched, err := c.Fetch(t.Context(), b.ref(t, "@"+info.Digest))
	if err != nil || len(fetched) != 2 || string(fetched[1].Data) != "version: 1" {
		t.Errorf("%+v %v", fetched, err)
	}
	for _, kind := range []string{SchemaLayerType, RowsLayerType} {
		m := map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": SchemaType,
			"config":      map[string]any{"mediaType": emptyConfigType, "size": 2, "digest": report.Digest([]byte("{}"))},
			"annotations": map[string]any{FormatAnnotation: "sql"}, "layers": []any{
				map[string]any{"mediaType": SchemaLayerType, "size": len(files[0].Data), "digest": report.Digest(files[0].Data), "annotations": map[string]any{titleAnnotation: "001.sql"}},
				map[string]any{"mediaType": kind, "size": len(files[1].Data), "digest": report.Digest(files[1].Data), "annotations": map[string]any{titleAnnotation: "a.rows.yaml"}}}}
		_, _, err := c.Fetch(t.Context(), b.put(t, c, m))
		if right := kind == RowsLayerType; right != (err == nil) || !right && code(t, err) != report.CodeInvalidArtifact {
			t.Errorf("a file of rows as %s: %v", kind, err)
		}
	}
	if _, err := c.Push(t.Context(), b.ref(t, ":none"), files[1:], nil); err == nil || !strings.Contains(err.Error(), ".sql") {
		t.Errorf("rows without a schema: %v", err)
	}
}
