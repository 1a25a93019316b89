package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
)

// codes is the closed vocabulary of problems.
var codes = []report.Code{
	report.CodeStalePlan, report.CodeProtectedTable, report.CodeUnsupported, report.CodeInvalidSchema,
	report.CodeInvalidPlan, report.CodeInvalidInput, report.CodeTransactionMode, report.CodeTooLarge,
	report.CodeServerVersion, report.CodeAuthentication, report.CodeConnection, report.CodePermission,
	report.CodeLockTimeout, report.CodeStatement, report.CodeNondeterminism, report.CodeNotFound, report.CodePolicy,
	report.CodeInvalidPolicy, report.CodeInvalidArtifact, report.CodeCanceled, report.CodeInternal,
}

// Exit codes of ptah that a report must agree with.
const exitSuccess = 0

// reported is what all reports have.
type reported struct {
	ContractVersion int             `json:"contractVersion"`
	Outcome         report.Outcome  `json:"outcome"`
	Problem         *report.Problem `json:"problem"`
}

// decodeReport reads one report of ptah. Unknown fields are ignored; a second document, another contract version, an
// outcome outside successes, refused, failed and unknown, and an unknown code are refused.
func decodeReport(data []byte, into any, successes ...report.Outcome) (*reported, error) {
	var head reported
	for _, target := range []any{&head, into} {
		decoder := json.NewDecoder(bytes.NewReader(data))
		if err := decoder.Decode(target); err != nil {
			return nil, errors.New("it is not a JSON report")
		}
		if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
			return nil, errors.New("more than one document was written")
		}
	}
	if head.ContractVersion != report.ContractVersion {
		return nil, fmt.Errorf("its contract version is %d, not %d", head.ContractVersion, report.ContractVersion)
	}
	ended := head.Outcome == report.OutcomeRefused || head.Outcome == report.OutcomeFailed || head.Outcome == report.OutcomeUnknown
	switch {
	case slices.Contains(successes, head.Outcome):
		if head.Problem != nil {
			return nil, errors.New("it names a problem beside a success")
		}
	case !ended:
		return nil, fmt.Errorf("its outcome %q is not one of this command", head.Outcome)
	case head.Problem == nil:
		return nil, errors.New("it names no problem")
	case !slices.Contains(codes, head.Problem.Code):
		return nil, fmt.Errorf("its problem code %q is not known", head.Problem.Code)
	case len(head.Problem.Categories) > 64 || len(head.Problem.SQLState) > 16:
		return nil, errors.New("its problem is larger than a problem may be")
	}
	return &head, nil
}

// readReport turns what a child left into its report, or into the error of the step. The report is set also where
// ptah said no. A success counts only when the report and the exit code both say so.
func readReport(command string, left outcome, into any, successes ...report.Outcome) (decoded bool, problem *result.Error) {
	if left.truncated {
		return false, executionError("ptah %s wrote a report of more than %d bytes", command, maxReportBytes)
	}
	if len(left.stdout) == 0 {
		if left.usage != "" {
			return false, executionError("ptah %s did not understand its command line: %s", command, left.usage)
		}
		return false, executionError("ptah %s %s and wrote no report", command, left.ended)
	}
	head, err := decodeReport(left.stdout, into, successes...)
	if err != nil {
		return false, executionError("the report of ptah %s could not be read: %v", command, err)
	}
	if head.Problem != nil {
		message := head.Problem.Message
		if message == "" {
			message = "ptah " + command + " gave no reason"
		}
		return true, &result.Error{Code: result.ErrorPtah, Message: message, Problem: head.Problem}
	}
	if left.exitCode != exitSuccess {
		return false, executionError("ptah %s reported success but %s", command, left.ended)
	}
	return true, nil
}
