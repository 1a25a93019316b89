package command

import (
	"fmt"

	"ptah.run/ptah/operator/artifact"
	"ptah.run/ptah/operator/executor/hcl"
)

// piece is SQL of the desired schema, with the file it comes from, and the place in it where it was made of HCL.
type piece struct{ name, sql, place string }

// desired returns the desired schema as SQL, in the order in which it loads. SQL files load in the order of their names.
// All HCL files are one declaration, whose statements load where the first of them stands.
func desired(files []artifact.File, convert func([]hcl.File) ([]hcl.Statement, error)) ([]piece, error) {
	var declared []hcl.File
	for _, file := range files {
		if file.HCL() {
			declared = append(declared, hcl.File{Name: file.Name, Data: file.Data})
		}
	}
	var out []piece
	for _, file := range files {
		switch {
		case !file.HCL():
			out = append(out, piece{name: file.Name, sql: string(file.Data)})
		case file.Name == declared[0].Name:
			statements, err := convert(declared)
			if err != nil {
				return nil, err
			}
			for _, s := range statements {
				out = append(out, piece{s.File, s.SQL, fmt.Sprintf("what line %d of the file %s declares", s.Line, s.File)})
			}
		}
	}
	return out, nil
}
