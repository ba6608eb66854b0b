// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.survivors;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.List;
import java.util.Map;

/**
 * A line between a member and the membership service.
 *
 * @param kind what it says
 * @param generation of the view it is about; 0: of none
 * @param rank a partition's number in JOIN, a place in the view in PROPOSE
 * @param size members of the view, in PROPOSE
 * @param rows in READY
 * @param skipped bad rows left out, in READY
 * @param text an address or a message
 * @param addresses by rank, in COMMIT
 * @param used rows by epoch, in ROWS
 */
@JsonInclude(JsonInclude.Include.NON_DEFAULT)
record MembershipMessage(Kind kind, long generation, int rank, int size, long rows, long skipped,
    String text, List<String> addresses, Map<Long, Long> used) {
  /** Those of a member come first, then those of the service. */
  enum Kind {
    /** A task that holds partition {@code rank} is there. */
    JOIN,
    /** It has loaded its {@code rows} and waits for a view. */
    READY,
    /** It lives. */
    ALIVE,
    /** It has trained on {@code used} so far, in epochs where that is news. */
    ROWS,
    /** It has opened its end of the proposed view's group, at {@code text}. */
    AGREE,
    /** Its run ended by {@code text}, and it waits for the next view. */
    BROKEN,
    /** Its run has come to the end. */
    DONE,
    /** It has stored the result. */
    STORED,

    /** Open your end of a group: you are {@code rank} of {@code size}. */
    PROPOSE,
    /** All have agreed: connect to {@code addresses} and run. */
    COMMIT,
    /** Break your run off: another view is to come. */
    REFORM,
    /** All are done: store the result. */
    STORE,
    /** There is nothing more to do. */
    END
  }

  private static final ObjectMapper JSON = new ObjectMapper();

  static MembershipMessage of(Kind kind) {
    return of(kind, 0, null);
  }

  static MembershipMessage of(Kind kind, long generation, String text) {
    return new MembershipMessage(kind, generation, 0, 0, 0, 0, text, null, null);
  }

  static MembershipMessage join(int partition) {
    return new MembershipMessage(Kind.JOIN, 0, partition, 0, 0, 0, null, null, null);
  }

  static MembershipMessage ready(long rows, long skipped) {
    return new MembershipMessage(Kind.READY, 0, 0, 0, rows, skipped, null, null, null);
  }

  static MembershipMessage rows(Map<Long, Long> used) {
    return new MembershipMessage(Kind.ROWS, 0, 0, 0, 0, 0, null, null, used);
  }

  static MembershipMessage propose(long generation, int rank, int size) {
    return new MembershipMessage(Kind.PROPOSE, generation, rank, size, 0, 0, null, null, null);
  }

  static MembershipMessage commit(long generation, List<String> addresses) {
    return new MembershipMessage(Kind.COMMIT, generation, 0, 0, 0, 0, null, addresses, null);
  }

  String toLine() {
    try {
      return JSON.writeValueAsString(this);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("a message is plain data", e);
    }
  }

  static MembershipMessage fromLine(String line) throws IOException {
    return JSON.readValue(line, MembershipMessage.class);
  }
}
