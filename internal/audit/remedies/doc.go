// Package remedies says what an auditor can do about what audit verify found.
package remedies
