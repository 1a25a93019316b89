package command

import (
	"slices"
	"testing"

	"ptah.run/ptah/operator/artifact"
	"ptah.run/ptah/operator/executor/hcl"
)

func TestHCLLoadsWhereItsFirstFileStands(t *testing.T) {
	table := func(schema, name string) []byte {
		return []byte("table \"" + name + "\" {\n  schema = schema." + schema + "\n  column \"id\" {\n    type = int\n    null = false\n  }\n}\n")
	}
	files := []artifact.File{{Name: "01.sql", Data: []byte("SELECT 1")}, {Name: "02.hcl", Data: table("shop", "b")},
		{Name: "03.sql", Data: []byte("SELECT 3")}, {Name: "04.hcl", Data: append([]byte("schema \"shop\" {}\n"), table("shop", "a")...)}}
	pieces, err := desired(files, hcl.PostgreSQL)
	if err != nil {
		t.Fatal(err)
	}
	var places []string
	for _, p := range pieces {
		places = append(places, p.name+" "+p.place)
	}
	if want := []string{"01.sql ", "04.hcl what line 1 of the file 04.hcl declares", "02.hcl what line 1 of the file 02.hcl declares",
		"04.hcl what line 2 of the file 04.hcl declares", "03.sql "}; !slices.Equal(places, want) {
		t.Errorf("%q", places)
	}
	if _, err := desired(append(files, artifact.File{Name: "05.hcl", Data: []byte("x = 1")}), hcl.PostgreSQL); err == nil {
		t.Error("what cannot be read is passed over")
	}
}
