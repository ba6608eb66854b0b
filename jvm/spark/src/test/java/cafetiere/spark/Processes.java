// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import cafetiere.spark.util.Unchecked;
import java.io.IOException;

/** Other programs, run to their end. */
public final class Processes {
  private Processes() {}

  /** The exit status of a command; -1 where there is no such program. */
  static int run(String... command) {
    try {
      return new ProcessBuilder(command).inheritIO().start().waitFor();
    } catch (IOException e) {
      return -1;
    } catch (InterruptedException e) {
      throw Unchecked.rethrow(e);
    }
  }

  /** Sends a signal, by its name without SIG. */
  public static void signal(String name, long pid) {
    run("kill", "-" + name, Long.toString(pid));
  }
}
