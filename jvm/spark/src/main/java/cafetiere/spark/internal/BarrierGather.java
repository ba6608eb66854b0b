// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.RequestMethod;
import org.apache.spark.RequestToSync;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskKilledException;
import org.apache.spark.rpc.AbortableRpcFuture;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcTimeout;
import org.apache.spark.util.RpcUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.concurrent.Await;
import scala.concurrent.duration.FiniteDuration;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * BarrierTaskContext.allGather() without its wait. Spark asks a coordinator in the driver and then
 * looks once a second whether the answer is there; here the same question is asked, and the answer
 * taken when it comes.
 */
public final class BarrierGather {
  private static final Logger LOG = LoggerFactory.getLogger(BarrierGather.class);
  private static final String COORDINATOR = "barrierSync";
  private static final ClassTag<String[]> TEXTS = ClassTag$.MODULE$.apply(String[].class);
  private static final FiniteDuration POLL = new FiniteDuration(100, TimeUnit.MILLISECONDS);
  /** As Spark's own: how long tasks may wait for each other is for the coordinator to say. */
  private static final RpcTimeout FOREVER =
      new RpcTimeout(new FiniteDuration(365, TimeUnit.DAYS), "barrierTimeout");

  private BarrierGather() {}

  /**
   * What each task of the stage has passed, in the order of the partitions, when all have called it.
   * At most once in a task, which then calls neither allGather() nor barrier(): the coordinator
   * numbers the meetings of a stage, and this is the first.
   *
   * @throws TaskKilledException if the task is killed meanwhile
   */
  public static List<String> texts(BarrierTaskContext context, String own)
      throws InterruptedException {
    AbortableRpcFuture<String[]> asked;
    try {
      asked = ask(context, own);
    } catch (LinkageError e) {
      LOG.info("This Spark has another coordinator of barrier stages ({}): its own allGather() is"
          + " called, which takes a second", e.toString());
      return List.of(context.allGather(own));
    }
    try {
      return List.of(await(context, asked));
    } catch (Throwable e) {
      asked.abort(e);
      throw e;
    }
  }

  private static AbortableRpcFuture<String[]> ask(BarrierTaskContext context, String own) {
    SparkEnv env = SparkEnv.get();
    RpcEndpointRef coordinator =
        RpcUtils.makeDriverRef(COORDINATOR, env.conf(), env.rpcEnv());
    int tasks = context.getTaskInfos().length;
    RequestToSync request = new RequestToSync(tasks, context.stageId(),
        context.stageAttemptNumber(), context.taskAttemptId(), 0, context.partitionId(), own,
        RequestMethod.ALL_GATHER());
    return coordinator.askAbortable(request, FOREVER, TEXTS);
  }

  private static String[] await(BarrierTaskContext context, AbortableRpcFuture<String[]> asked)
      throws InterruptedException {
    while (!context.isInterrupted()) {
      try {
        return Await.result(asked.future(), POLL);
      } catch (TimeoutException e) {
        // The others have not come yet.
      }
    }
    throw new TaskKilledException("killed while it waited for the other tasks of its stage");
  }
}
