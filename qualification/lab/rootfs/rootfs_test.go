package rootfs

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/lab/layer"
)

func archive(t *testing.T, entries ...tar.Header) io.Reader {
	t.Helper()
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	for _, entry := range entries {
		content := []byte(entry.Uname) // the test's way to give a content
		entry.Uname, entry.Size, entry.Mode = "", int64(len(content)), 0o644
		if entry.Typeflag != tar.TypeReg {
			entry.Size = 0
		}
		if err := writer.WriteHeader(&entry); err != nil {
			t.Fatal(err)
		}
		if entry.Typeflag == tar.TypeReg {
			if _, err := writer.Write(content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return &packed
}

func TestWhatIsExcludedAndDevicesStayOut(t *testing.T) {
	const status = "Package: a\nStatus: install ok installed\nVersion: 1:2\n\nPackage: b\nStatus: deinstall ok config-files\nVersion: 3\n"
	source := archive(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "./"},
		tar.Header{Typeflag: tar.TypeDir, Name: "./usr/share/doc/"},
		tar.Header{Typeflag: tar.TypeReg, Name: "./usr/share/doc/a/readme"},
		tar.Header{Typeflag: tar.TypeReg, Name: "./usr/share/doc/a/copyright"},
		tar.Header{Typeflag: tar.TypeReg, Name: "./usr/lib/libLLVM.so.19"},
		tar.Header{Typeflag: tar.TypeReg, Name: "./usr/lib/libpq.so"},
		tar.Header{Typeflag: tar.TypeChar, Name: "./dev/null"},
		tar.Header{Typeflag: tar.TypeReg, Name: "./var/lib/dpkg/status", Uname: status},
	)
	dir := t.TempDir()
	writer, err := layer.NewWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Filter(source, writer, catalog.Filesystem{
		Exclude: []string{"usr/share/doc/**", "usr/lib/libLLVM*"}, Keep: []string{"usr/share/doc/*/copyright"},
	})
	if err != nil || string(got) != status {
		t.Fatalf("status %q, %v", got, err)
	}
	if _, err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(dir, "layer.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var names []string
	reader := tar.NewReader(file)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
	want := []string{"usr/share/doc/", "usr/share/doc/a/copyright", "usr/lib/libpq.so", "var/lib/dpkg/status"}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if packages := packagesOfStatus(got); !reflect.DeepEqual(packages, []string{"a=1:2"}) {
		t.Errorf("packages %v", packages)
	}
}

func TestATornArchiveIsAnError(t *testing.T) {
	whole, _ := io.ReadAll(archive(t, tar.Header{Typeflag: tar.TypeReg, Name: "./file", Uname: strings.Repeat("x", 2000)}))
	writer, err := layer.NewWriter(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Abort()
	if _, err := Filter(bytes.NewReader(whole[:1000]), writer, catalog.Filesystem{}); err == nil {
		t.Error("half an archive was taken")
	}
}

func TestPackagesAreReadFromFileNames(t *testing.T) {
	got := packagesOfFiles([]byte("partial\nlibc6_2.41-12_amd64.deb\nlibattr1_1%3a2.5.2-3_amd64.deb\nlock\n"))
	if want := []string{"libattr1=1:2.5.2-3", "libc6=2.41-12"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAnotherVersionThanExpectedIsRefused(t *testing.T) {
	packages := []string{"postgresql-17=17.12-0", "postgresql-17-x=99"}
	cases := map[string]struct {
		packages []string
		expect   map[string]string
		says     string
	}{
		"the expected one":    {packages, map[string]string{"postgresql-17": "17."}, ""},
		"another one":         {packages, map[string]string{"postgresql-17": "18."}, "expects 18."},
		"an absent package":   {packages, map[string]string{"mysql": "9."}, "not in the file system"},
		"no package at all":   {nil, nil, "names no package"},
		"nothing is expected": {packages, nil, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := checkVersions(c.packages, c.expect)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestWithoutMmdebstrapTheFixIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Build(context.Background(), catalog.Filesystem{Name: "x"}, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "apt-get install mmdebstrap") {
		t.Errorf("got %v", err)
	}
}

func TestAFailingMmdebstrapIsQuotedAndLeavesNoLayer(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\necho 'E: no such suite' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(bin, "mmdebstrap"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	_, err := Build(context.Background(), catalog.Filesystem{Name: "x", Suite: "nowhere", Variant: "minbase", Include: []string{"a"}}, dir)
	if err == nil || !strings.Contains(err.Error(), "no such suite") {
		t.Errorf("got %v", err)
	}
	if _, err := layer.Open(dir); err == nil {
		t.Error("a layer was finished")
	}
}
