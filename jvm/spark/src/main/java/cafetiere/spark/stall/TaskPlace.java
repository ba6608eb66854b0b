// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.stall;

import cafetiere.spark.util.Json;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.LongSupplier;

/** What a task without a {@link cafetiere.core.Trainer} is doing, for its {@link StallWatch}. */
public final class TaskPlace {
  private record Activity(LongSupplier step, String doing) {}

  private final int thread = kernelThread();
  private volatile Activity now = new Activity(() -> 0, "starting");

  /** The task has {@code step} iterations behind it and begins {@code doing}. */
  public void enter(long step, String doing) {
    enter(() -> step, doing);
  }

  /** The task begins {@code doing}, in which {@code step} tells how many iterations it has behind it. */
  public void enter(LongSupplier step, String doing) {
    now = new Activity(step, doing);
  }

  /** As {@link cafetiere.core.Trainer#place} says it; the thread is the one that made this. Any thread. */
  public JsonNode json() {
    Activity seen = now;
    return Json.object().put("step", seen.step().getAsLong()).put("doing", seen.doing()).put("thread", thread);
  }

  /** The kernel's id of the calling thread; 0 where it is not to be had. */
  private static int kernelThread() {
    try {
      Path own = Files.readSymbolicLink(Path.of("/proc/thread-self"));
      return Integer.parseInt(own.getFileName().toString());
    } catch (IOException | NumberFormatException e) {
      return 0;
    }
  }
}
