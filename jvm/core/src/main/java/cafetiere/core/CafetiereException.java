// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

/** An error that the engine reports: what happened, where, and what to change. */
public final class CafetiereException extends RuntimeException {
  /** Whom an error is due to, which says whether to try again. */
  private enum Origin { NOBODY, JOB, MACHINE, PEER }

  /** The kinds of error of the C interface, in its order, and what may be tried again. */
  public enum Code {
    OK(Origin.NOBODY),
    INVALID_ARGUMENT(Origin.JOB),
    NOT_FOUND(Origin.JOB),
    /** A disk that is full or gone: another machine has its own. */
    IO(Origin.MACHINE),
    UNAVAILABLE(Origin.PEER),
    TIMEOUT(Origin.PEER),
    /**
     * What else runs there decides how much memory a machine has left, and it costs one attempt to
     * find out that it is not enough anywhere; to end the run would cost all that it has done.
     */
    OUT_OF_MEMORY(Origin.MACHINE),
    /** Somebody has stopped this call, as a rule since a peer was lost; who stopped the run knows. */
    CANCELLED(Origin.PEER),
    /** A fault of the engine, whose computation is the same each time. */
    INTERNAL(Origin.JOB);

    private final Origin origin;

    Code(Origin origin) {
      this.origin = origin;
    }

    /** Whether the same work may succeed when it is done again, here or on another machine. */
    public boolean mayPass() {
      return origin == Origin.MACHINE || origin == Origin.PEER;
    }

    /** Whether it follows from what happened to a peer, which has the cause. */
    public boolean isOfPeer() {
      return origin == Origin.PEER;
    }
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

  /** Whether the same work may succeed when it is done again, as {@link Code#mayPass} says. */
  public boolean isRetryable() {
    return code.mayPass();
  }
}
