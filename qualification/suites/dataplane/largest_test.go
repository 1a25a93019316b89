package dataplane

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/tenant"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

// The tables of a large version for MySQL, whose comments are short. Every column has one, so that each further letter
// makes the plan longer by exactly one byte.
const (
	largeTables  = 8
	largeColumns = 1000
	longest      = 1024 // letters of a column's comment
)

// large is a version whose comments hold a number of letters together.
func large(letters int) subject.Version {
	return subject.Version{
		lab.PostgreSQL: "CREATE TABLE large (id bigint PRIMARY KEY);\nCOMMENT ON TABLE large IS '" + strings.Repeat("x", letters) + "';\n",
		lab.MySQL:      largeMySQL(letters),
	}
}

func largeMySQL(letters int) string {
	var sql strings.Builder
	const all = largeTables * largeColumns
	for column := range all {
		length := letters / all
		if column < letters%all {
			length++
		}
		switch column % largeColumns {
		case 0:
			fmt.Fprintf(&sql, "CREATE TABLE large_%d (\n", column/largeColumns)
		default:
			sql.WriteString(",\n")
		}
		fmt.Fprintf(&sql, "  c%03d tinyint COMMENT '%s'", column%largeColumns, strings.Repeat("x", length))
		if column%largeColumns == largeColumns-1 {
			sql.WriteString("\n);\n")
		}
	}
	return sql.String()
}

// stored asks the database for the number of letters in its comments.
var stored = map[string]string{
	lab.PostgreSQL: `SELECT length(obj_description('large'::regclass, 'pg_class'))`,
	lab.MySQL:      `SELECT CAST(SUM(CHAR_LENGTH(column_comment)) AS SIGNED) FROM information_schema.columns WHERE table_schema = DATABASE()`,
}

func TestLargestPlanExecuted(t *testing.T) {
	t.Parallel()
	scenario(t, "largest-plan-executed", func(ctx context.Context, s *bench.Scenario) {
		const some = 2 * largeTables * largeColumns
		one := subject.Prepare(ctx, s, large(some), subject.Seldom)
		jobs := one.RecordJobs(ctx)
		one.Declare(ctx)
		small, _ := one.Await(ctx, "a plan that waits for approval", bench.AwaitingApproval)
		letters := some + int(v1alpha1.MaxPlanBytes-small.Status.Plan.Size)
		s.Observe("letters of the largest plan", letters)
		s.Need("the largest plan can be written", subject.ErrorUnless(s.Bench.Engine() != v1alpha1.EngineMySQL || letters <= largeTables*largeColumns*longest, "comments of MySQL cannot be that long"))

		one.Publish(ctx, large(letters+1))
		one.Touch(ctx)
		beyond := told(ctx, one, v1alpha1.ConditionPlanReady, metav1.ConditionFalse, v1alpha1.ReasonPlanRefused, fmt.Sprint(v1alpha1.MaxPlanBytes))
		s.Check("one byte more is refused", beyond.Status.Plan == nil && beyond.Status.Phase == v1alpha1.PhaseBlocked, "phase %s, plan %v", beyond.Status.Phase, beyond.Status.Plan)

		waiting := one.PlanFor(ctx, large(letters), "a plan of the largest size")
		s.Check("the plan has exactly the largest size", waiting.Status.Plan.Size == v1alpha1.MaxPlanBytes, "the plan has %d bytes, the largest has %d", waiting.Status.Plan.Size, v1alpha1.MaxPlanBytes)
		inChunks(ctx, one, waiting)
		readByAPerson(ctx, one, waiting)
		s.Check("control: the database has nothing of it before the approval", len(one.Columns(ctx)) == 0, "columns are there before the approval")

		approved := time.Now()
		one.Approve(ctx, waiting, "largest")
		schema, _ := one.Await(ctx, "proven convergence", bench.InSync)
		s.Check("one Apply", len(jobs.Applies(ctx)) == 1, "Apply Jobs of the record: %v", jobs.Applies(ctx))
		writes := len(one.Journal(approved).Writes)
		s.Check("each statement was sent once", writes == int(waiting.Status.Plan.StatementCount), "the plan has %d statements, the journal shows %d", waiting.Status.Plan.StatementCount, writes)
		s.Check("the Apply is credited", schema.Status.Applied != nil && schema.Status.Applied.PlanFingerprint == waiting.Status.Plan.Fingerprint, "status.applied must name the approved plan")
		held := commentLetters(ctx, one)
		s.Check("the database holds every letter", held == letters, "the comments hold %d letters, published were %d", held, letters)
	})
}

// inChunks checks how the plan is stored: whole, in chunks of the largest size.
func inChunks(ctx context.Context, one *subject.Subject, waiting *v1alpha1.PtahSchema) {
	one.T.Helper()
	plan := &v1alpha1.PtahSchemaPlan{}
	one.Fixture(one.Bench.Client.Get(ctx, client.ObjectKey{Namespace: one.Key.Namespace, Name: waiting.Status.Plan.Name}, plan))
	total := 0
	for _, reference := range plan.Spec.Chunks {
		chunk := &v1alpha1.PtahSchemaPlanChunk{}
		one.Fixture(one.Bench.Client.Get(ctx, client.ObjectKey{Namespace: one.Key.Namespace, Name: reference.Name}, chunk))
		one.Check("size of "+reference.Name, len(chunk.Spec.Data) == v1alpha1.MaxChunkBytes, "the chunk has %d bytes", len(chunk.Spec.Data))
		total += len(chunk.Spec.Data)
	}
	one.Check("the chunks hold the plan", len(plan.Spec.Chunks) == v1alpha1.MaxPlanChunks && total == v1alpha1.MaxPlanBytes, "%d chunks hold %d bytes", len(plan.Spec.Chunks), total)
}

// readByAPerson reads the plan as somebody does who is to approve it.
func readByAPerson(ctx context.Context, one *subject.Subject, waiting *v1alpha1.PtahSchema) {
	one.T.Helper()
	command := exec.CommandContext(ctx, tenant.Program(one.Bench.Lab, "kubectl-ptah"), "plan", one.Key.Name, "-n", one.Key.Namespace,
		"-o", "json", "--kubeconfig", one.Bench.Lab.Kubeconfig)
	output, err := command.Output()
	one.Need("kubectl ptah plan shows it", err)
	one.Check("what it shows is the plan to the byte", fingerprint(string(output)) == waiting.Status.Plan.ContentDigest, "%d bytes were shown, with another digest than %s", len(output), waiting.Status.Plan.ContentDigest)
}

func commentLetters(ctx context.Context, one *subject.Subject) int {
	one.T.Helper()
	sessions, err := one.Database.ByHand()
	one.Fixture(err)
	defer func() { _ = sessions.Close() }()
	letters := 0
	one.Fixture(sessions.QueryRowContext(ctx, stored[one.Database.Server.Engine]).Scan(&letters))
	return letters
}
