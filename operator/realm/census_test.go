package realm

import (
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
)

type change func(*Claimant)

// keyed claims the database "orders" of namespace team-a.
func keyed(uid string, changes ...change) Claimant {
	c := Claimant{UID: uid, Namespace: "team-a", Target: ptahv1.DatabaseTargetSpec{Engine: ptahv1.EnginePostgreSQL, CoordinationKey: "orders"}}
	for _, change := range changes {
		change(&c)
	}
	return c
}

// granted claims the database of PtahRealm orders from a namespace.
func granted(uid, namespace string, changes ...change) Claimant {
	return keyed(uid, append([]change{func(c *Claimant) {
		c.Namespace = namespace
		c.Target.CoordinationKey, c.Target.RealmRef = "", &ptahv1.RealmReference{Name: "orders"}
	}}, changes...)...)
}

func shared(c *Claimant)                    { c.Target.SharedRealm = true }
func idle(c *Claimant)                      { c.Idle = true }
func engine(e ptahv1.DatabaseEngine) change { return func(c *Claimant) { c.Target.Engine = e } }
func inNamespace(namespace string) change   { return func(c *Claimant) { c.Namespace = namespace } }
func key(key string) change                 { return func(c *Claimant) { c.Target.CoordinationKey = key } }
func realmOf(s ptahv1.RealmSharing, n ...ptahv1.RealmNamespace) *ptahv1.PtahRealm {
	return &ptahv1.PtahRealm{
		ObjectMeta: metav1.ObjectMeta{Name: "orders"},
		Spec:       ptahv1.PtahRealmSpec{Engine: ptahv1.EnginePostgreSQL, Namespaces: n, Sharing: s},
	}
}

func TestADatabaseThatSeveralClaimIsWorkedOnOnlyByAgreement(t *testing.T) {
	const conflict, unauthorized = ptahv1.ReasonRealmConflict, ptahv1.ReasonRealmNotAuthorized
	both := []ptahv1.RealmNamespace{"team-a", "team-b"}
	for name, test := range map[string]struct {
		self   Claimant
		others []Claimant
		realm  *ptahv1.PtahRealm
		want   ptahv1.Reason
		counts string
	}{
		"one claimant works":                               {keyed("1"), nil, nil, "", ""},
		"one claimant that finds itself works":             {keyed("1"), []Claimant{keyed("1")}, nil, "", ""},
		"two claimants are refused":                        {keyed("1"), []Claimant{keyed("2")}, nil, conflict, "2 resources claim this database and 2 of them"},
		"two of which one declared are refused":            {keyed("1", shared), []Claimant{keyed("2")}, nil, conflict, "2 resources claim this database and 1 of them"},
		"two of which the other declared are refused":      {keyed("1"), []Claimant{keyed("2", shared)}, nil, conflict, "2 resources claim this database and 1 of them"},
		"two that declared work":                           {keyed("1", shared), []Claimant{keyed("2", shared)}, nil, "", ""},
		"three of which the third did not declare":         {keyed("1", shared), []Claimant{keyed("1", shared), keyed("2", shared), keyed("3")}, nil, conflict, "3 resources claim this database and 1 of them"},
		"the declaration in the live spec counts":          {keyed("1", shared), []Claimant{keyed("1"), keyed("2", shared)}, nil, "", ""},
		"an idle claimant claims nothing":                  {keyed("1"), []Claimant{keyed("2", idle)}, nil, "", ""},
		"another key is another database":                  {keyed("1"), []Claimant{keyed("2", key("orders2"))}, nil, "", ""},
		"a key of another namespace is another database":   {keyed("1"), []Claimant{keyed("2", inNamespace("team-b"))}, nil, "", ""},
		"another engine is another database":               {keyed("1"), []Claimant{keyed("2", engine(ptahv1.EngineMySQL))}, nil, "", ""},
		"another spelling of the engine is the same":       {keyed("1"), []Claimant{keyed("2", engine("postgres"))}, nil, conflict, "2 resources"},
		"an unknown engine is for others to refuse":        {keyed("1", engine("Oracle")), []Claimant{keyed("2", engine("Oracle"))}, nil, "", ""},
		"a realm of the name of a key is another database": {keyed("1"), []Claimant{granted("2", "team-a")}, nil, "", ""},

		"a realm admits a listed namespace":              {granted("1", "team-a"), nil, realmOf(ptahv1.RealmExclusive, both...), "", ""},
		"a realm that does not exist":                    {granted("1", "team-a"), nil, nil, unauthorized, "PtahRealm orders does not exist"},
		"a realm that does not list the namespace":       {granted("1", "team-c"), nil, realmOf(ptahv1.RealmShared, both...), unauthorized, "does not list namespace team-c"},
		"a realm of another engine":                      {granted("1", "team-a", engine(ptahv1.EngineMySQL)), nil, realmOf(ptahv1.RealmShared, both...), unauthorized, "is for PostgreSQL and spec.target.engine is MySQL"},
		"a realm of the same engine spelled differently": {granted("1", "team-a", engine("pgx")), nil, realmOf(ptahv1.RealmShared, both...), "", ""},
		"two namespaces in an exclusive realm":           {granted("1", "team-a", shared), []Claimant{granted("2", "team-b", shared)}, realmOf(ptahv1.RealmExclusive, both...), conflict, "2 resources claim the database of PtahRealm orders, which admits one at a time"},
		"a realm without a word on sharing is exclusive": {granted("1", "team-a", shared), []Claimant{granted("2", "team-b", shared)}, realmOf("", both...), conflict, "admits one at a time"},
		"an exclusive realm with one idle claimant":      {granted("1", "team-a"), []Claimant{granted("2", "team-b", idle)}, realmOf(ptahv1.RealmExclusive, both...), "", ""},
		"two namespaces that share a shared realm":       {granted("1", "team-a", shared), []Claimant{granted("2", "team-b", shared)}, realmOf(ptahv1.RealmShared, both...), "", ""},
		"two of a shared realm, one of them undeclared":  {granted("1", "team-a", shared), []Claimant{granted("2", "team-b")}, realmOf(ptahv1.RealmShared, both...), conflict, "2 resources claim this database and 1 of them"},
		"a claim that the realm refuses is not counted":  {granted("1", "team-a"), []Claimant{granted("2", "team-c")}, realmOf(ptahv1.RealmExclusive, both...), "", ""},
		"a claim of another engine is not counted":       {granted("1", "team-a"), []Claimant{granted("2", "team-b", engine(ptahv1.EngineMySQL))}, realmOf(ptahv1.RealmExclusive, both...), "", ""},
		"a refused claim is refused, not contested":      {granted("1", "team-c"), []Claimant{granted("2", "team-a")}, realmOf(ptahv1.RealmExclusive, both...), unauthorized, "team-c"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(test.self, test.others, test.realm)
			if got.Reason != test.want || !strings.Contains(got.Message, test.counts) || (got.Message == "") != got.Allowed() {
				t.Errorf("verdict %q (%s), want %q with %q", got.Reason, got.Message, test.want, test.counts)
			}
		})
	}
}

// Whoever asks gets the same answer: a conflict that only one side sees would let the other work.
func TestAllClaimantsOfADatabaseGetOneVerdict(t *testing.T) {
	realm := realmOf(ptahv1.RealmShared, "team-a", "team-b", "team-c")
	for declared := range 8 {
		claimants := make([]Claimant, 3)
		for i := range claimants {
			claimants[i] = granted(fmt.Sprint(i), "team-"+string(rune('a'+i)))
			claimants[i].Target.SharedRealm = declared&(1<<i) != 0
		}
		first := Judge(claimants[0], claimants, realm)
		if first.Allowed() != (declared == 7) {
			t.Errorf("declarations %03b: %q", declared, first.Reason)
		}
		for _, claimant := range claimants[1:] {
			if got := Judge(claimant, claimants, realm); got != first {
				t.Errorf("declarations %03b: %+v beside %+v", declared, got, first)
			}
		}
	}
}

func TestAMessageNamesNobodyElse(t *testing.T) {
	for _, sharing := range []ptahv1.RealmSharing{ptahv1.RealmExclusive, ptahv1.RealmShared} {
		got := Judge(granted("1", "team-a"), []Claimant{granted("tenant-uid", "tenant-b")}, realmOf(sharing, "team-a", "tenant-b"))
		if got.Allowed() || strings.Contains(got.Message, "tenant") {
			t.Errorf("%s: %+v", sharing, got)
		}
	}
	if got := Judge(granted("1", "team-a"), nil, realmOf(ptahv1.RealmShared, "tenant-b")); got.Allowed() || strings.Contains(got.Message, "tenant") {
		t.Errorf("not admitted: %+v", got)
	}
}

// The page for people quotes what they will read.
func TestTheRealmPageQuotesTheMessage(t *testing.T) {
	page, err := os.ReadFile("../../support/docs/realms.md")
	if err != nil {
		t.Fatal(err)
	}
	if message := Judge(keyed("1"), []Claimant{keyed("2")}, nil).Message; message == "" || !strings.Contains(string(page), "\n"+message+"\n") {
		t.Errorf("the page does not quote %q", message)
	}
}

func TestATargetIsTheDatabaseOfItsKeyOrOfItsRealm(t *testing.T) {
	byKey, err := Digest("team-a", keyed("1").Target)
	if want, _ := KeyDigest("PostgreSQL", "team-a", "orders"); err != nil || byKey != want {
		t.Errorf("a key gives %s, %v", byKey, err)
	}
	byRealm, err := Digest("team-a", granted("1", "team-a").Target)
	if want, _ := NameDigest("PostgreSQL", "orders"); err != nil || byRealm != want {
		t.Errorf("a realm gives %s, %v", byRealm, err)
	}
	if elsewhere, _ := Digest("team-b", granted("1", "team-b").Target); elsewhere != byRealm {
		t.Error("one realm is two databases in two namespaces")
	}
}
