package realm

import (
	"fmt"
	"slices"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
)

// Claimant is a resource as far as the census looks at it.
type Claimant struct {
	UID       string
	Namespace string
	Target    ptahv1.DatabaseTargetSpec
	// Idle says that the resource is suspended or being deleted. What runs nothing claims nothing.
	Idle bool
}

// Verdict says whether a resource may work on the database that it names. A message counts other resources and never
// names one: they can be of other tenants.
type Verdict struct {
	// Reason is RealmNotAuthorized, RealmConflict, or empty where the resource may work.
	Reason  ptahv1.Reason
	Message string
}

// Allowed says that nothing is in the way.
func (v Verdict) Allowed() bool { return v.Reason == "" }

// Digest is the coordination digest of what a target names in a namespace.
func Digest(namespace string, target ptahv1.DatabaseTargetSpec) (string, error) {
	if target.RealmRef != nil {
		return NameDigest(string(target.Engine), target.RealmRef.Name)
	}
	return KeyDigest(string(target.Engine), namespace, target.CoordinationKey)
}

// Judge says whether self may work. realm is the PtahRealm that self names, nil where it names none or there is none.
// others may hold anything, self included: only claimants of the same database count, and of those only the ones that
// the realm admits. A target without a coordination digest is allowed, because what is wrong with it is for others to
// say.
func Judge(self Claimant, others []Claimant, realm *ptahv1.PtahRealm) Verdict {
	if refusal := refusal(realm, self); refusal != "" {
		return Verdict{ptahv1.ReasonRealmNotAuthorized, refusal}
	}
	digest, err := Digest(self.Namespace, self.Target)
	if err != nil {
		return Verdict{}
	}
	claimants, undeclared := 1, 0
	if !self.Target.SharedRealm {
		undeclared++
	}
	for _, other := range others {
		if other.Idle || other.UID == self.UID || refusal(realm, other) != "" {
			continue
		}
		if theirs, err := Digest(other.Namespace, other.Target); err != nil || theirs != digest {
			continue
		}
		claimants++
		if !other.Target.SharedRealm {
			undeclared++
		}
	}
	switch {
	case claimants == 1:
		return Verdict{}
	case realm != nil && realm.Spec.Sharing != ptahv1.RealmShared:
		return Verdict{ptahv1.ReasonRealmConflict, fmt.Sprintf(
			"%d resources claim the database of PtahRealm %s, which admits one at a time (spec.sharing is Exclusive), so none of them works; delete or suspend all but one.",
			claimants, realm.Name)}
	case undeclared > 0:
		return Verdict{ptahv1.ReasonRealmConflict, fmt.Sprintf(
			"%d resources claim this database and %d of them do not set spec.target.sharedRealm, so none of them works; delete or suspend all but one, or set it in each if each manages a part of its own.",
			claimants, undeclared)}
	}
	return Verdict{}
}

// refusal says why a realm does not admit a claimant, "" if it does. A claimant that names no realm needs none.
func refusal(realm *ptahv1.PtahRealm, claimant Claimant) string {
	reference := claimant.Target.RealmRef
	switch {
	case reference == nil:
		return ""
	case realm == nil || realm.Name != reference.Name:
		return fmt.Sprintf("PtahRealm %s does not exist; have an administrator create it, or correct spec.target.realmRef.", reference.Name)
	case !sameEngine(realm.Spec.Engine, claimant.Target.Engine):
		return fmt.Sprintf("PtahRealm %s is for %s and spec.target.engine is %s; correct spec.target.", realm.Name, realm.Spec.Engine, claimant.Target.Engine)
	case !slices.Contains(realm.Spec.Namespaces, ptahv1.RealmNamespace(claimant.Namespace)):
		return fmt.Sprintf("PtahRealm %s does not list namespace %s; have an administrator add it to spec.namespaces, or correct spec.target.realmRef.", realm.Name, claimant.Namespace)
	}
	return ""
}

func sameEngine(a, b ptahv1.DatabaseEngine) bool {
	first, err := CanonicalEngine(string(a))
	if err != nil {
		return a == b
	}
	second, err := CanonicalEngine(string(b))
	return err == nil && first == second
}
