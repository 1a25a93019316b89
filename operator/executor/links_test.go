package executor_test

import (
	"os/exec"
	"strings"
	"testing"
)

// databaseCode is what only the executor links.
var databaseCode = []string{"github.com/jackc/pgx/", "github.com/go-sql-driver/mysql", "vitess.io/vitess/", "github.com/stripe/pg-schema-diff/",
	"ariga.io/atlas/", "github.com/hashicorp/hcl/v2", "ptah.run/ptah/operator/executor/postgresql/", "ptah.run/ptah/operator/executor/mysql/"}

func TestOnlyTheExecutorLinksDatabaseCode(t *testing.T) {
	for program, wanted := range map[string]bool{"manager": false, "ptah-runner": false, "kubectl-ptah": false, "ptah": true} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "ptah.run/ptah/operator/cmd/"+program).Output()
		if err != nil {
			t.Fatalf("list what %s links: %v", program, err)
		}
		for _, code := range databaseCode {
			if strings.Contains(string(out), code) != wanted {
				t.Errorf("%s links %s: %t", program, code, !wanted)
			}
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "ptah.run/ptah/operator/cmd/ptah").Output()
	if err != nil || strings.Contains(string(out), "k8s.io/client-go") {
		t.Errorf("the executor links a Kubernetes client: %v", err)
	}
}
