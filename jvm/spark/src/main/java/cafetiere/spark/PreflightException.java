// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.util.List;

/** What cannot work as it is set up: every reason found, and what to change for each. */
public final class PreflightException extends IllegalArgumentException {
  private static final long serialVersionUID = 1L;

  private final List<String> findings;

  public PreflightException(List<String> findings) {
    super(findings.size() == 1
        ? findings.get(0)
        : findings.size() + " things to change before this can start:\n  - "
            + String.join("\n  - ", findings));
    this.findings = List.copyOf(findings);
  }

  /** One sentence or two for each fault, each with what to change. */
  public List<String> findings() {
    return findings;
  }
}
