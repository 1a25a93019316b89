package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/carryover"
	"ptah.run/ptah/qualification/record"
)

// comparison is what two releases are compared by.
type comparison struct {
	from, to           string
	repository, claims string
	keys               []string
}

func (c *comparison) register(command *cobra.Command, keyUsage string) {
	command.Flags().StringVar(&c.from, "from", "", "earlier release: a commit, a tag or the file of a signed record")
	command.Flags().StringVar(&c.to, "to", "", "later release: a commit, a tag or the file of a signed record")
	command.Flags().StringVar(&c.repository, "repository", ".", "git repository that holds the commits")
	command.Flags().StringVar(&c.claims, "claims", "", "declaration of the claims (default: "+claimsPath+" of the repository)")
	command.Flags().StringArrayVar(&c.keys, "verify-key", nil, keyUsage)
	mustRequire(command, "from", "to")
	mustComplete(command, "from", completeRevisions)
	mustComplete(command, "to", completeRevisions)
}

// compared is the result of a comparison.
type compared struct {
	claims   *carryover.Claims
	from, to carryover.Side
	changes  []carryover.Change
	unknown  []string
}

// compare reads both sides and finds what differs. Errors carry their exit code.
func (c *comparison) compare(ctx context.Context) (*compared, error) {
	path := c.claims
	if path == "" {
		path = filepath.Join(c.repository, filepath.FromSlash(claimsPath))
	}
	claims, err := loadClaims(path)
	if err != nil {
		return nil, err
	}
	result := &compared{claims: claims}
	if result.from, err = c.side(ctx, c.from); err != nil {
		return nil, err
	}
	if result.to, err = c.side(ctx, c.to); err != nil {
		return nil, err
	}
	var paths []carryover.Change
	if result.from.Commit != "" && result.to.Commit != "" {
		if paths, err = (gitRepository{dir: c.repository}).changes(ctx, result.from.Commit, result.to.Commit); err != nil {
			return nil, Exit(ExitUsage, err)
		}
	}
	result.changes, result.unknown = claims.Compare(result.from, result.to, paths)
	if paths == nil && (result.from.Images == nil || result.to.Images == nil) {
		return nil, Exit(ExitNotEstablished, fmt.Errorf("%s and %s have neither commits nor images that could be compared", c.from, c.to))
	}
	return result, nil
}

// side resolves a release: the file of a record says more than a commit, and is believed only with a key.
func (c *comparison) side(ctx context.Context, name string) (carryover.Side, error) {
	git := gitRepository{dir: c.repository}
	if isFile(name) {
		if len(c.keys) == 0 {
			return carryover.Side{}, Exit(ExitUsage, fmt.Errorf("%s is a file: give the public key of the record in it with --verify-key", name))
		}
		verified, err := verifyRecord(ctx, verifyFlags{record: name, keys: c.keys})
		if err != nil {
			return carryover.Side{}, err
		}
		side := verified.Side(name)
		if side.Commit != "" {
			if _, err := git.commit(ctx, side.Commit); err != nil {
				return carryover.Side{}, Exit(ExitUsage, fmt.Errorf("%s: %w", name, err))
			}
		}
		return side, nil
	}
	commit, err := git.commit(ctx, name)
	if err != nil {
		return carryover.Side{}, Exit(ExitUsage, err)
	}
	policies, err := git.policies(ctx, commit)
	return carryover.Side{Name: name, Commit: commit, Policies: policies}, Exit(ExitUsage, err)
}

type impactFlags struct {
	comparison
	format  string
	reviews []string
	strict  bool
}

// impacted is a claim with what a change demands of it and the review that settles it.
type impacted struct {
	carryover.Reached
	Review string `json:"review,omitempty"` // file of the signed review that covers exactly these changes
}

func (i impacted) open() bool { return i.Action != carryover.Stands && i.Review == "" }

func newRecordImpact(streams IOStreams) *cobra.Command {
	var flags impactFlags
	command := &cobra.Command{
		Use:   "impact --from A --to B [--review FILE --verify-key PUB]...",
		Short: "List the claims that a change reaches: which must be shown again, which may be reviewed",
		Long: `Impact compares the shipped bytes of two releases with what each claim depends on (` + claimsPath + `). A claim stands
when nothing it depends on changed; it is to be repeated when the change takes its evidence away; and else it may be
settled by a signed review. A shipped file that no claim names reaches every claim.

A release is a commit or a tag, or the file of a signed record, which also knows image digests and platforms.
With --strict it exits 4 while a claim is neither standing nor covered by a signed review of exactly this change.`,
		Example: `  ptah-qualify record impact --from v0.2.2 --to v0.2.4
  ptah-qualify record impact --from v0.2.2 --to v0.2.4 --review restore.review.json --verify-key release.pub --strict`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runImpact(command.Context(), streams.Out, flags)
		},
	}
	flags.register(command, "PEM public key of records and reviews; repeat to admit several")
	command.Flags().StringArrayVar(&flags.reviews, "review", nil, "signed review; repeat for several")
	command.Flags().BoolVar(&flags.strict, "strict", false, "exit 4 while a claim must be repeated or reviewed")
	command.Flags().StringVar(&flags.format, "format", "text", "text or json")
	return command
}

func runImpact(ctx context.Context, out io.Writer, flags impactFlags) error {
	if len(flags.reviews) > 0 && len(flags.keys) == 0 {
		return Exit(ExitUsage, errors.New("give the public key of the reviews with --verify-key"))
	}
	found, err := flags.compare(ctx)
	if err != nil {
		return err
	}
	reviews, err := readReviews(ctx, flags.reviews, flags.keys)
	if err != nil {
		return err
	}
	var list []impacted
	left := 0
	for _, reached := range found.claims.Impact(found.changes) {
		one := impacted{Reached: reached}
		for path, review := range reviews {
			if reached.Action == carryover.Review && review.Claim == reached.Claim.Name && found.covers(review) == nil {
				one.Review = path
			}
		}
		if one.open() {
			left++
		}
		list = append(list, one)
	}
	for path, review := range reviews {
		if err := found.covers(review); err != nil {
			return Exit(ExitVerificationFailed, fmt.Errorf("%s does not carry anything over: %w", path, err))
		}
	}
	if err := printImpact(out, flags.format, found, list); err != nil {
		return err
	}
	if flags.strict && left > 0 {
		return Exit(ExitNotEstablished, fmt.Errorf("%d of %d claims must be shown again or reviewed before they hold for %s", left, len(list), flags.to))
	}
	return nil
}

// covers refuses a review of another release or of other changes.
func (c *compared) covers(review *carryover.ReviewStatement) error {
	if review.To.Commit != c.to.Commit || review.From.Commit != c.from.Commit {
		return fmt.Errorf("it reviews the change from %s to %s", describe(review.From), describe(review.To))
	}
	return review.Covers(c.claims, c.changes)
}

func describe(release carryover.Release) string {
	if release.Commit == "" || release.Commit == release.Name {
		return release.Name
	}
	return release.Name + " (" + release.Commit + ")"
}

func readReviews(ctx context.Context, paths, keyPaths []string) (map[string]*carryover.ReviewStatement, error) {
	keys, err := readVerifiers(keyPaths)
	if err != nil {
		return nil, err
	}
	reviews := map[string]*carryover.ReviewStatement{}
	for _, path := range paths {
		data, err := readInput(path)
		if err != nil {
			return nil, err
		}
		review, _, err := record.VerifyReview(ctx, data, keys)
		if err != nil {
			return nil, Exit(ExitVerificationFailed, fmt.Errorf("%s does not verify: %w", path, err))
		}
		reviews[path] = review
	}
	return reviews, nil
}

func printImpact(out io.Writer, format string, found *compared, list []impacted) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(struct {
			Changes     []carryover.Change `json:"changes"`
			NotCompared []string           `json:"notCompared"`
			Claims      []impacted         `json:"claims"`
		}{append([]carryover.Change{}, found.changes...), append([]string{}, found.unknown...), list})
	case "text":
	default:
		return Exit(ExitUsage, fmt.Errorf("there is no format %q, use text or json", format))
	}
	printf(out, "%d changes of what is shipped, from %s to %s\n", len(found.changes), describe(carryover.Release{Name: found.from.Name, Commit: found.from.Commit}),
		describe(carryover.Release{Name: found.to.Name, Commit: found.to.Commit}))
	if len(found.unknown) > 0 {
		printf(out, "not compared, because one side does not know them: %s\n", strings.Join(found.unknown, ", "))
	}
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	printLine(table, "\nDEMANDS\tREQUIREMENT\tCLAIM\tBECAUSE")
	for _, one := range list {
		demand := string(one.Action)
		if one.Review != "" {
			demand = "reviewed"
		}
		printf(table, "%s\t%s\t%s\t%s\n", demand, one.Claim.Requirement, one.Claim.Name, because(one))
	}
	return table.Flush()
}

// because names the first changes that reach a claim.
func because(one impacted) string {
	const most = 3
	var words []string
	for i, change := range one.Because {
		if i == most {
			words = append(words, fmt.Sprintf("and %d more", len(one.Because)-most))
			break
		}
		words = append(words, change.String())
	}
	if one.Review != "" {
		words = append(words, "covered by "+one.Review)
	}
	return strings.Join(words, ", ")
}

type reviewFlags struct {
	comparison
	claim, reason, by, key, output string
}

func newRecordReview(streams IOStreams) *cobra.Command {
	var flags reviewFlags
	command := &cobra.Command{
		Use:   "review --claim NAME --from A --to B --reason TEXT --by NAME --key KEY",
		Short: "Sign that a change does not reach what was shown for a claim, and why",
		Long: `Review finds the changes between two releases that reach a claim and signs, in the name of a person, why they do not touch
what was shown before. It refuses a claim that no change reaches and one that must be shown again: no reason stands in
for evidence that is gone. The signed statement names the exact changes; a further change needs a review of its own.`,
		Example: `  ptah-qualify record review --claim restore --from v0.2.2 --to v0.2.4 --by "A. Person" \
    --reason "Result cleanup and refresh slots touch no restore step and no stored format." --key release.key`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runReview(command.Context(), streams.Out, flags)
		},
	}
	flags.register(command, "PEM public key of the records that --from and --to name; repeat to admit several")
	command.Flags().StringVar(&flags.claim, "claim", "", "claim that is reviewed")
	command.Flags().StringVar(&flags.reason, "reason", "", "why the change does not reach what was shown")
	command.Flags().StringVar(&flags.by, "by", "", "who reviewed")
	command.Flags().StringVar(&flags.key, "key", "", "PEM private key that signs the review")
	command.Flags().StringVar(&flags.output, "output", "", "file to write (default: CLAIM.review.json)")
	mustComplete(command, "claim", completeClaims)
	mustComplete(command, "key", completePrivateKeys)
	mustRequire(command, "claim", "reason", "by", "key")
	command.AddCommand(newRecordReviewVerify(streams))
	return command
}

func runReview(ctx context.Context, out io.Writer, flags reviewFlags) error {
	found, err := flags.compare(ctx)
	if err != nil {
		return err
	}
	signer, err := readSigner(flags.key)
	if err != nil {
		return err
	}
	review, err := found.claims.NewReview(carryover.Reviewed{Claim: flags.claim, From: found.from, To: found.to, Changes: found.changes, Unknown: found.unknown,
		Reason: flags.reason, By: flags.by, At: time.Now()})
	if err != nil {
		return Exit(ExitUsage, err)
	}
	data, err := record.SignReview(ctx, review, signer)
	if err != nil {
		return Exit(ExitUsage, err)
	}
	if flags.output == "" {
		flags.output = flags.claim + ".review.json"
	}
	if err := writeOutput(flags.output, data); err != nil {
		return err
	}
	printf(out, "%s: claim %s, %d changes reviewed\n", flags.output, review.Claim, len(review.Changes))
	return nil
}

func newRecordReviewVerify(streams IOStreams) *cobra.Command {
	var path string
	var keyPaths []string
	command := &cobra.Command{
		Use:   "verify --review FILE --key PUB",
		Short: "Check a signed review and print what it states",
		Long: `Verify checks the signatures of a review offline and prints it. Whether it covers the change between two releases says
` + "`ptah-qualify record impact --review`" + `.`,
		Example: `  ptah-qualify record review verify --review restore.review.json --key release.pub`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			reviews, err := readReviews(command.Context(), []string{path}, keyPaths)
			if err != nil {
				return err
			}
			r := reviews[path]
			printf(streams.Out, "claim: %s (%s) %s\nfrom: %s\nto: %s\nby: %s, %s\nreason: %s\n", r.Claim, r.Requirement, r.Statement, describe(r.From), describe(r.To), r.By, r.At.Format(time.RFC3339), r.Reason)
			for _, change := range r.Changes {
				printf(streams.Out, "change: %s\n", change)
			}
			if len(r.NotCompared) > 0 {
				printf(streams.Out, "not compared: %s\n", strings.Join(r.NotCompared, ", "))
			}
			return nil
		},
	}
	command.Flags().StringVar(&path, "review", "", "signed review")
	command.Flags().StringArrayVar(&keyPaths, "key", nil, "PEM public key; repeat to admit several")
	mustRequire(command, "review", "key")
	return command
}

// completeClaims completes the names of claims where the program runs in a repository.
func completeClaims(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	claims, err := loadClaims(filepath.FromSlash(claimsPath))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeWords(claims.Names()...)(nil, nil, begun)
}
