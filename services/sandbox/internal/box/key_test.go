package box

import "testing"

func TestNoTwoTenantsShareAFolder(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, tenant := range []string{"a", "A", "..", ".", ".trash", "a/b", "a%2Fb", "a\\b", "ä", "a b"} {
		folder := Key{Tenant: tenant}.folder()
		if other, ok := seen[folder]; ok {
			t.Errorf("%q and %q share %s", tenant, other, folder)
		}
		seen[folder] = tenant
		if back := tenantOf(folder); back != tenant {
			t.Errorf("%q comes back as %q", tenant, back)
		}
		for _, c := range folder {
			if c == '/' || c == '.' {
				t.Errorf("%q becomes %s", tenant, folder)
			}
		}
	}
}

func TestKeysThatCouldNameAnotherFolderAreRefused(t *testing.T) {
	t.Parallel()
	for _, k := range []Key{{"", "a"}, {"t", ""}, {"t", ".."}, {"t", "a/b"}, {"t", ".a"}, {"t", "A"}} {
		if k.check() == nil {
			t.Errorf("%+v was accepted", k)
		}
	}
	if err := (Key{"t", "a-1"}).check(); err != nil {
		t.Error(err)
	}
}
