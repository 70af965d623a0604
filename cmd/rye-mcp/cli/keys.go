package cli

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func newKeysCommand(sys System, opts *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make a signing key, and decide whose keys you trust",
		Long: `Directives, tools and knowledge are used when a key that you trust has signed them: your
own, or somebody else's. "rye-mcp help signatures" says how.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newKeysGenerateCommand(sys, opts), newKeysListCommand(sys, opts),
		newKeysTrustCommand(sys, opts), newKeysShowCommand(sys, opts),
	)
	return cmd
}

// openRoots are the spaces of a command, which need not exist yet.
func openRoots(sys System, opts options) (resolve.Roots, error) {
	dir, err := projectDir(sys, opts)
	if err != nil {
		return resolve.Roots{}, err
	}
	if dir, err = canonical(dir); err != nil {
		return resolve.Roots{}, err
	}
	user, err := userSpace(sys)
	return resolve.Roots{Project: dir, User: user, System: system.FS()}, err
}

func openKeyring(sys System, opts options) (*trust.Keyring, error) {
	roots, err := openRoots(sys, opts)
	if err != nil {
		return nil, err
	}
	return newGate(sys, roots).Keyring()
}

func newKeysGenerateCommand(sys System, opts *options) *cobra.Command {
	var force, asJSON bool
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Make a signing key in your user space",
		Long: `Make an Ed25519 signing key in .ai/config/keys/signing of your user space. A key
that is there stays, unless --force is given: what it signed is then not trusted
any more until you sign it again.`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			user, err := userSpace(sys)
			if err != nil {
				return err
			}
			if force {
				if err := mayDecide(sys, whoseSignature); err != nil {
					return err
				}
			}
			key, err := sign.Generate(user, force, rand.Reader)
			if errors.Is(err, sign.ErrKeyExists) {
				return tool.Faultf(tool.CodeUnsupported, "%w", err).
					WithHint("rye-mcp keys show shows it; --force replaces it, and what it signed must then be signed again")
			}
			if err != nil {
				return unwritable(err)
			}
			return tellEntry(sys, *opts, key.Fingerprint(), trust.Own, "created", asJSON)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace the key that is there")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func newKeysTrustCommand(sys System, opts *options) *cobra.Command {
	var (
		owner, space string
		asJSON       bool
	)
	cmd := &cobra.Command{
		Use:   "trust FILE",
		Short: "Trust what somebody else's key signed",
		Long: `Trust a key, so that what it signed is executed. FILE is the public key as PEM, or
a trusted-key document, such as one that a project brings along; - reads standard
input. The document that is written is signed with your key.

Before that, compare the fingerprint with its owner over another channel.`,
		Example: `  rye-mcp keys trust ada.pem --owner ada
  rye-mcp keys trust .ai/config/keys/trusted/0123456789abcdef.toml`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			return trustKey(sys, *opts, args[0], owner, item.Space(space), asJSON)
		},
	}
	cmd.Flags().StringVar(&owner, "owner", "", "whose key it is (default: as the document says)")
	cmd.Flags().StringVar(&space, "space", string(item.User), "user: for yourself; project: for everybody who trusts your key")
	completeFlag(cmd, "space", func() []string { return []string{string(item.User), string(item.Project)} })
	jsonFlag(cmd, &asJSON)
	return cmd
}

func trustKey(sys System, opts options, file, owner string, space item.Space, asJSON bool) error {
	if space != item.User && space != item.Project {
		return &usageError{message: fmt.Sprintf("--space %s is not known", space), try: "--space user or --space project"}
	}
	if err := mayDecide(sys, whoseSignature); err != nil {
		return err
	}
	roots, err := openRoots(sys, opts)
	if err != nil {
		return err
	}
	own, err := sign.Load(roots.User)
	if errors.Is(err, sign.ErrNoKey) {
		return tool.Faultf(tool.CodeNoKey, "there is nothing to vouch with: %w", err).WithHint("rye-mcp keys generate")
	}
	if err != nil {
		return err
	}
	src, err := readKeyFile(sys, file)
	if err != nil {
		return err
	}
	doc, key, err := trust.ParseKey(src)
	if err != nil {
		return tool.Faultf(tool.CodeInvalidItem, "%s: %w", file, err).
			WithHint("the PEM of a public key, which rye-mcp keys show prints for its owner")
	}
	doc.Owner = cmp.Or(owner, doc.Owner)
	switch {
	case doc.Owner == "":
		return &usageError{message: "the file does not say whose key it is", try: "rye-mcp keys trust " + file + " --owner NAME"}
	case key.Equal(own.Public()):
		return tool.Faultf(tool.CodeUnsupported, "%s is your own key, which is trusted", key.Fingerprint()).
			WithHint("rye-mcp keys list shows whom else you trust")
	}
	dir := roots.User
	if space == item.Project {
		dir = roots.Project
	}
	if _, err := (trust.Grant{Document: doc, By: own, At: sys.Now()}).Store(dir, space); err != nil {
		return err
	}
	return tellEntry(sys, opts, doc.Fingerprint, trust.Trusted, "trusted", asJSON)
}

// maxKeyFile bounds what is read of a key: 1 MiB, which is refused as too large
// by whoever parses it.
const maxKeyFile = 1 << 20

func readKeyFile(sys System, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(sys.Stdin, maxKeyFile))
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	return io.ReadAll(io.LimitReader(file, maxKeyFile))
}
