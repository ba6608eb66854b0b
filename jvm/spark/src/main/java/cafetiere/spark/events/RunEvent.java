// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.events;

import java.io.Serializable;

/**
 * An event of a rank on its way to the driver.
 *
 * @param run the run it belongs to
 * @param attempt number of the barrier stage within the run, from 0
 * @param sequence number within the attempt, from 1; lets the driver drop what came by two routes;
 *     0 of another rank than the first
 * @param json the event as the engine gave it
 */
public record RunEvent(String run, int attempt, long sequence, String json)
    implements Serializable {
  /** The sequence of what another rank than the first has to say. */
  static final long UNNUMBERED = 0;
}
