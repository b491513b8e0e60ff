// Package checks holds the tests of what is published: the bundle, the released bundles and the
// catalog. They are the checks that catalogs make before they take an operator in, and those that
// OLM makes on installation and upgrade, as far as they need neither a registry nor a cluster.
package checks
