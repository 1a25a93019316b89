package command

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
)

// ConnectWith returns a Connect that reads kubeconfig files as kubectl does and calls itself by the user agent.
func ConnectWith(userAgent string) Connect {
	return func(connection Connection) (client.Reader, string, error) {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = connection.Kubeconfig
		overrides := &clientcmd.ConfigOverrides{CurrentContext: connection.Context}
		overrides.Context.Namespace = connection.Namespace
		loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
		namespace, _, err := loader.Namespace()
		if err != nil {
			return nil, "", fmt.Errorf("read the kubeconfig: %w", err)
		}
		config, err := loader.ClientConfig()
		if err != nil {
			return nil, "", fmt.Errorf("read the kubeconfig: %w", err)
		}
		config.UserAgent = userAgent
		types := runtime.NewScheme()
		if err := v1alpha1.AddToScheme(types); err != nil {
			return nil, "", fmt.Errorf("register the kinds: %w", err)
		}
		reader, err := client.New(config, client.Options{Scheme: types, Mapper: mapper()})
		if err != nil {
			return nil, "", fmt.Errorf("make a client: %w", err)
		}
		return reader, namespace, nil
	}
}

// mapper knows the three kinds that are read, so that no request is spent on asking which exist.
func mapper() meta.RESTMapper {
	known := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	for kind, plural := range map[string]string{
		"PtahSchema":          "ptahschemas",
		"PtahSchemaPlan":      "ptahschemaplans",
		"PtahSchemaPlanChunk": "ptahschemaplanchunks",
	} {
		known.AddSpecific(v1alpha1.GroupVersion.WithKind(kind), v1alpha1.GroupVersion.WithResource(plural),
			v1alpha1.GroupVersion.WithResource(kind), meta.RESTScopeNamespace)
	}
	return known
}
