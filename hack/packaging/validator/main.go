// Command validator looks at what operator-sdk's own validators leave out. operator-sdk runs it:
//
//	operator-sdk bundle validate bundle --alpha-select-external PATH/OF/validator
//
// Its argument is the bundle; it prints one result as JSON and fails only where it cannot read the bundle.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/ambient-code/agentic-operator/hack/packaging/internal/external"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "validator:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("name the folder of a bundle")
	}
	result, err := external.Validate(context.Background(), args[0])
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	return nil
}
