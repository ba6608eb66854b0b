// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.run;

import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/** The tasks of one attempt. */
public interface TaskStage {
  /** Runs them to the end; throws what ended them otherwise, unless outcomes tell it. */
  void run() throws Exception;

  /** The outcomes that have arrived, in the order of their arrival. */
  List<TaskOutcome> outcomes();

  /** Whether the tasks were cancelled here, because some had reported the loss of others. */
  boolean wasCancelled();

  /** What it adds to the run's result. */
  default ObjectNode account() {
    return Json.object();
  }
}
