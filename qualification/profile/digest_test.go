package profile

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// shuffle puts the keys of every mapping into another order.
func shuffle(node *yaml.Node, random *rand.Rand) {
	if node.Kind == yaml.MappingNode {
		random.Shuffle(len(node.Content)/2, func(i, j int) {
			node.Content[2*i], node.Content[2*j] = node.Content[2*j], node.Content[2*i]
			node.Content[2*i+1], node.Content[2*j+1] = node.Content[2*j+1], node.Content[2*i+1]
		})
	}
	for _, child := range node.Content {
		shuffle(child, random)
	}
}

// scalars collects every value of a document that is a number or text, keys left out.
func scalars(node *yaml.Node, into *[]*yaml.Node) {
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			continue
		}
		if child.Kind == yaml.ScalarNode {
			*into = append(*into, child)
		}
		scalars(child, into)
	}
}

// trials is how often a document is tried in one run: large ones less often, because each run has another seed.
func trials(data []byte) int { return max(2, 60_000/len(data)) }

func parsed(t *testing.T, data []byte) *yaml.Node {
	t.Helper()
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		t.Fatal(err)
	}
	return &node
}

func written(t *testing.T, node *yaml.Node) []byte {
	t.Helper()
	data, err := yaml.Marshal(node)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func eachProfile(t *testing.T, do func(t *testing.T, data []byte)) {
	t.Helper()
	paths, err := filepath.Glob("../../profiles/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v, %v", paths, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(path), func(t *testing.T) { do(t, data) })
	}
}

func TestTheDigestDoesNotDependOnTheOrderOfKeys(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	eachProfile(t, func(t *testing.T, data []byte) {
		want := decode(t, string(data)).Digest()
		moved := false
		for range trials(data) {
			node := parsed(t, data)
			shuffle(node, random)
			text := written(t, node)
			moved = moved || !strings.HasPrefix(string(text), "apiVersion")
			if got := decode(t, string(text)).Digest(); got != want {
				t.Fatalf("seed %d: another order of keys has the digest %s, want %s", seed, got, want)
			}
		}
		if !moved {
			t.Error("no shuffle moved a key, this test shows nothing")
		}
	})
}

// Any declared value that changes gives another digest, and a sentence of Diff or a refusal of the revision.
func TestEveryValueIsPartOfTheDigestAndOfTheDiff(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	eachProfile(t, func(t *testing.T, data []byte) {
		before := decode(t, string(data))
		changed := 0
		for tried := 0; changed < trials(data) && tried < 100; tried++ {
			node := parsed(t, data)
			var values []*yaml.Node
			scalars(node, &values)
			value := values[random.IntN(len(values))]
			old := value.Value
			if value.Tag == "!!int" {
				value.Value += "0"
			} else {
				value.Value += "x"
			}
			after, err := Decode("p", written(t, node))
			if err != nil {
				continue // a closed vocabulary refused it
			}
			same := old == "0"
			if (after.Digest() == before.Digest()) != same {
				t.Fatalf("seed %d: %q became %q, digests %s and %s", seed, old, value.Value, before.Digest(), after.Digest())
			}
			if same {
				continue
			}
			changed++
			if err := CheckRevision(before, after); err == nil {
				t.Fatalf("seed %d: %q became %q without a revision, and nobody refuses it", seed, old, value.Value)
			}
			if strings.Contains(string(parsedRevisions(after)), value.Value) {
				continue // a reworded revision is refused, and is no change of what is declared
			}
			if len(Diff(before, after)) == 0 {
				t.Fatalf("seed %d: %q became %q and the difference has no words", seed, old, value.Value)
			}
		}
		if changed == 0 {
			t.Error("no value was changed, this test shows nothing")
		}
	})
}

func parsedRevisions(p *Profile) []byte { return []byte(mustCanonical(p.Revisions)) }
