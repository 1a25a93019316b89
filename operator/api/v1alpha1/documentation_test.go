package v1alpha1_test

import (
	"context"
	"os"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var yamlBlock = regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```\n")

// What the page on realms tells people to write is what the API server takes.
func TestTheObjectsOfTheRealmPageAreAccepted(t *testing.T) {
	c := serverClient(t)
	page, err := os.ReadFile("../../../support/docs/realms.md")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, block := range yamlBlock.FindAllSubmatch(page, -1) {
		o := object(t, string(block[1]))
		kinds[o.GetKind()]++
		if err := c.Create(context.Background(), o, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
			t.Errorf("%s %s of the page: %v", o.GetKind(), o.GetName(), err)
		}
	}
	if kinds["PtahRealm"] != 1 || kinds["PtahSchema"] != 1 {
		t.Errorf("the page holds %v", kinds)
	}
}
