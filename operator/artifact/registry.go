package artifact

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"ptah.run/ptah/operator/plan/report"
)

// Media types and annotations of a schema artifact.
const (
	SchemaType       = "application/vnd.ptah.run.schema.v1"
	SchemaLayerType  = "application/vnd.ptah.run.schema.sql.v1"
	RowsLayerType    = "application/vnd.ptah.run.schema.rows.v1+yaml"
	HCLLayerType     = "application/vnd.ptah.run.schema.hcl.v1"
	emptyConfigType  = "application/vnd.oci.empty.v1+json"
	titleAnnotation  = "org.opencontainers.image.title"
	FormatAnnotation = "run.ptah.schema-format"
	formatSQL        = "sql" // every file is SQL
	formatHCL        = "hcl" // some file is HCL; an executor that knows none of it refuses the artifact by this
)

// manifest is an OCI image manifest with the fields that artifacts use.
type manifest struct {
	SchemaVersion int64             `json:"schemaVersion"`
	MediaType     string            `json:"mediaType,omitempty"`
	ArtifactType  string            `json:"artifactType,omitempty"`
	Config        v1.Descriptor     `json:"config"`
	Layers        []v1.Descriptor   `json:"layers"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// artifactType is the declared type, or the config's media type where older tools put it.
func (m manifest) artifactType() string {
	if m.ArtifactType != "" {
		return m.ArtifactType
	}
	if t := string(m.Config.MediaType); t != emptyConfigType {
		return t
	}
	return ""
}

// Info is what a registry says about an artifact.
type Info struct {
	Reference    string
	Pinned       string
	Digest       string
	MediaType    string
	ArtifactType string
	Size         int64 // bytes of the manifest, the config and all layers
	Annotations  map[string]string
	manifest     manifest
}

// Resolve reads the manifest a reference names.
func (c *Client) Resolve(ctx context.Context, ref Reference) (*Info, error) {
	descriptor, err := remote.Get(c.ref(ref), c.options(ctx, ref)...)
	if err != nil {
		return nil, registryError(ctx, "reading the artifact's manifest", err)
	}
	digest := descriptor.Digest.String()
	if got := report.Digest(descriptor.Manifest); got != digest || ref.Digest() != "" && ref.Digest() != digest {
		return nil, fail(report.CodeInvalidArtifact, "the registry sent a manifest that does not have its digest")
	}
	info := &Info{Reference: ref.String(), Pinned: ref.Pinned(digest), Digest: digest, MediaType: string(descriptor.MediaType),
		Size: int64(len(descriptor.Manifest))}
	if !descriptor.MediaType.IsImage() {
		return nil, fail(report.CodeInvalidArtifact, "the reference names an index or a list and not one artifact")
	}
	if err := json.Unmarshal(descriptor.Manifest, &info.manifest); err != nil || info.manifest.SchemaVersion != 2 {
		return nil, fail(report.CodeInvalidArtifact, "the manifest is not an OCI image manifest")
	}
	info.ArtifactType = info.manifest.artifactType()
	info.Annotations = info.manifest.Annotations
	for _, d := range append([]v1.Descriptor{info.manifest.Config}, info.manifest.Layers...) {
		if d.Size < 0 || info.Size+d.Size < info.Size {
			return nil, fail(report.CodeInvalidArtifact, "the manifest holds an impossible size")
		}
		info.Size += d.Size
	}
	return info, nil
}

// File is one file of a schema artifact.
type File struct {
	Name string
	Data []byte
}

// Push writes files as a schema artifact under a tag. Equal files and annotations have one digest.
func (c *Client) Push(ctx context.Context, ref Reference, files []File, annotations map[string]string) (*Info, error) {
	if ref.Digest() != "" {
		return nil, fail(report.CodeInvalidInput, "an artifact is pushed under a tag, not under a digest")
	}
	if err := checkFiles(files); err != nil {
		return nil, err
	}
	config := static.NewLayer([]byte("{}"), emptyConfigType)
	m := manifest{SchemaVersion: 2, MediaType: string(types.OCIManifestSchema1), ArtifactType: SchemaType,
		Annotations: map[string]string{}, Layers: []v1.Descriptor{}}
	maps.Copy(m.Annotations, annotations)
	m.Annotations[FormatAnnotation] = formatOf(files)
	layers := []v1.Layer{config}
	for _, file := range slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Name, b.Name) }) {
		layer := static.NewLayer(file.Data, types.MediaType(layerType(file.Name)))
		d, err := describe(layer)
		if err != nil {
			return nil, err
		}
		d.Annotations = map[string]string{titleAnnotation: file.Name}
		m.Layers = append(m.Layers, d)
		layers = append(layers, layer)
	}
	var err error
	if m.Config, err = describe(config); err != nil {
		return nil, err
	}
	target := c.ref(ref)
	options := c.options(ctx, ref)
	for _, layer := range layers {
		if err := remote.WriteLayer(target.Context(), layer, options...); err != nil {
			return nil, registryError(ctx, "writing a file of the artifact", err)
		}
	}
	data, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode the manifest: %w", err)
	}
	if err := remote.Put(target, rawManifest{data}, options...); err != nil {
		return nil, registryError(ctx, "writing the artifact's manifest", err)
	}
	return c.Resolve(ctx, ref)
}

func describe(layer v1.Layer) (v1.Descriptor, error) {
	digest, err := layer.Digest()
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("digest a file: %w", err)
	}
	size, err := layer.Size()
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("measure a file: %w", err)
	}
	mediaType, err := layer.MediaType()
	return v1.Descriptor{MediaType: mediaType, Digest: digest, Size: size}, err
}

// rawManifest lets the client library write bytes as they are.
type rawManifest struct{ data []byte }

// RawManifest returns the bytes.
func (m rawManifest) RawManifest() ([]byte, error) { return m.data, nil }

// MediaType is that of every schema artifact.
func (m rawManifest) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// Fetch reads the files of a schema artifact. The reference must be pinned.
func (c *Client) Fetch(ctx context.Context, ref Reference) (*Info, []File, error) {
	if ref.Digest() == "" {
		return nil, nil, fail(report.CodeInvalidInput, "an artifact is pulled by digest; resolve the tag first")
	}
	info, err := c.Resolve(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	if err := info.checkSchema(); err != nil {
		return nil, nil, err
	}
	var files []File
	for _, d := range info.manifest.Layers {
		data, err := c.blob(ctx, ref, d)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, File{Name: d.Annotations[titleAnnotation], Data: data})
	}
	if err := checkFiles(files); err != nil {
		return nil, nil, err
	}
	if info.Annotations[FormatAnnotation] != formatOf(files) {
		return nil, nil, fail(report.CodeInvalidArtifact, "the artifact's annotation "+FormatAnnotation+" does not say of which format its files are")
	}
	return info, files, nil
}

// checkSchema refuses what is not a schema artifact before anything of it is fetched.
func (i *Info) checkSchema() error {
	switch {
	case i.ArtifactType != SchemaType:
		return fail(report.CodeInvalidArtifact, "the artifact is not a schema; its type is not "+SchemaType)
	case i.Annotations[FormatAnnotation] != formatSQL && i.Annotations[FormatAnnotation] != formatHCL:
		return fail(report.CodeInvalidArtifact, "the artifact's annotation "+FormatAnnotation+" is neither sql nor hcl")
	case len(i.manifest.Layers) == 0 || len(i.manifest.Layers) > MaxFiles:
		return fail(report.CodeInvalidArtifact, fmt.Sprintf("the artifact holds no file or more than %d", MaxFiles))
	case i.Size > MaxTotalBytes:
		return fail(report.CodeInvalidArtifact, fmt.Sprintf("the artifact is larger than %d bytes", MaxTotalBytes))
	}
	for _, d := range i.manifest.Layers {
		if kind := layerType(d.Annotations[titleAnnotation]); kind == "" || string(d.MediaType) != kind {
			return fail(report.CodeInvalidArtifact, "the artifact holds a layer that is neither an SQL or HCL file nor a declaration of rows, or is named as another")
		}
		if d.Size > MaxFileBytes {
			return fail(report.CodeInvalidArtifact, fmt.Sprintf("the artifact holds a file of more than %d bytes", MaxFileBytes))
		}
	}
	return nil
}

// blob reads one layer and checks its size and digest.
func (c *Client) blob(ctx context.Context, ref Reference, d v1.Descriptor) ([]byte, error) {
	const doing = "reading a file of the artifact"
	digest := c.ref(ref).Context().Digest(d.Digest.String())
	layer, err := remote.Layer(digest, c.options(ctx, ref)...)
	if err != nil {
		return nil, registryError(ctx, doing, err)
	}
	body, err := layer.Compressed()
	if err != nil {
		return nil, registryError(ctx, doing, err)
	}
	defer func() { _ = body.Close() }()
	data, err := io.ReadAll(io.LimitReader(body, d.Size+1))
	if err != nil {
		return nil, registryError(ctx, doing, err)
	}
	if int64(len(data)) != d.Size || report.Digest(data) != d.Digest.String() {
		return nil, fail(report.CodeInvalidArtifact, "the registry sent a file that does not have its digest or size")
	}
	return data, nil
}

const hclSuffix = ".hcl"

// HCL says whether a file declares its objects in HCL; otherwise it is SQL.
func (f File) HCL() bool { return strings.HasSuffix(f.Name, hclSuffix) }

func formatOf(files []File) string {
	if slices.ContainsFunc(files, File.HCL) {
		return formatHCL
	}
	return formatSQL
}

// checkFiles refuses names that are not plain file names, duplicates, and content that cannot be text.
func checkFiles(files []File) error {
	switch {
	case !slices.ContainsFunc(files, func(f File) bool { return layerType(f.Name) != RowsLayerType }):
		return fail(report.CodeInvalidArtifact, "a schema holds at least one file whose name ends in .sql or .hcl")
	case len(files) > MaxFiles:
		return fail(report.CodeInvalidArtifact, fmt.Sprintf("a schema holds at most %d files", MaxFiles))
	}
	seen := map[string]bool{}
	total := 0
	for _, file := range files {
		if !plainName(file.Name) {
			return fail(report.CodeInvalidArtifact, "a file name of the schema is not of letters, digits, '.', '_' and '-' with .sql, .hcl or .rows.yaml at its end")
		}
		if seen[file.Name] {
			return fail(report.CodeInvalidArtifact, "two files of the schema have one name")
		}
		seen[file.Name] = true
		total += len(file.Data)
		if len(file.Data) > MaxFileBytes || total > MaxTotalBytes {
			return fail(report.CodeInvalidArtifact, fmt.Sprintf("a schema holds files of at most %d bytes and %d together", MaxFileBytes, MaxTotalBytes))
		}
		if bytes.IndexByte(file.Data, 0) >= 0 {
			return fail(report.CodeInvalidArtifact, "a file of the schema holds a NUL byte and is not text")
		}
	}
	return nil
}

// suffixes are the ends of file names with the media types of what they hold.
var suffixes = map[string]string{".sql": SchemaLayerType, hclSuffix: HCLLayerType, ".rows.yaml": RowsLayerType}

// layerType is the media type of a file of that name, or empty where it is none of a schema.
func layerType(name string) string {
	for suffix, kind := range suffixes {
		if strings.HasSuffix(name, suffix) {
			return kind
		}
	}
	return ""
}

func plainName(name string) bool {
	stem := name
	for suffix := range suffixes {
		stem = strings.TrimSuffix(stem, suffix)
	}
	if layerType(name) == "" || stem == "" || len(name) > 255 || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") {
		return false
	}
	return strings.Trim(stem, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// Referrers returns the artifact types of what refers to a digest.
func (c *Client) Referrers(ctx context.Context, ref Reference) ([]string, error) {
	digest, ok := c.ref(ref).(name.Digest)
	if !ok {
		return nil, fail(report.CodeInvalidInput, "referrers are asked for by digest")
	}
	const doing = "reading what refers to the artifact"
	index, err := remote.Referrers(digest, c.options(ctx, ref)...)
	if err != nil {
		return nil, registryError(ctx, doing, err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		return nil, registryError(ctx, doing, err)
	}
	var out []string
	if len(m.Manifests) > maxReferrers {
		return nil, fail(report.CodeInvalidArtifact, fmt.Sprintf("more than %d artifacts refer to this one", maxReferrers))
	}
	for _, d := range m.Manifests {
		kind := d.ArtifactType
		if kind == "" || kind == emptyConfigType {
			// Some registries list the config's type, which says nothing where the config is empty.
			if kind, err = c.typeOf(ctx, ref, d.Digest.String()); err != nil {
				return nil, err
			}
		}
		out = append(out, kind)
	}
	return out, nil
}

// maxReferrers bounds how many artifacts are looked at.
const maxReferrers = 100

func (c *Client) typeOf(ctx context.Context, ref Reference, digest string) (string, error) {
	one, err := ParseReference(ref.Pinned(digest))
	if err != nil {
		return "", err
	}
	info, err := c.Resolve(ctx, one)
	if err != nil {
		return "", err
	}
	return info.ArtifactType, nil
}
