// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

/** An error that the engine reports: what happened, where, and what to change. */
public final class CafetiereException extends RuntimeException {
  /** The kinds of error of the C interface, in its order. */
  public enum Code {
    OK,
    INVALID_ARGUMENT,
    NOT_FOUND,
    IO,
    UNAVAILABLE,
    TIMEOUT,
    OUT_OF_MEMORY,
    CANCELLED,
    INTERNAL
  }

  private final Code code;

  /** Makes an error of the given kind. */
  public CafetiereException(Code code, String message) {
    super(message);
    this.code = code;
  }

  /** Makes an error of the given kind that has a cause. */
  public CafetiereException(Code code, String message, Throwable cause) {
    super(message, cause);
    this.code = code;
  }

  /** The kind of error. */
  public Code code() {
    return code;
  }

  /** Whether the same call may succeed when repeated: a peer was lost or stayed silent. */
  public boolean isRetryable() {
    return code == Code.UNAVAILABLE || code == Code.TIMEOUT;
  }
}
