// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.explain;

import cafetiere.spark.cost.Account;
import cafetiere.spark.cost.CoreHours;
import cafetiere.spark.explain.Explanation.StepTime;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.run.Engine;
import cafetiere.spark.run.Run;
import java.util.function.Supplier;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/**
 * Trains for a moment as the fit would, on a few of its rows, and throws the weights away: a few steps
 * first, then these and as many more as take a second. What both have in common is no step. All steps
 * together take at most three seconds, unless one step, or a period of the mode, takes longer than one.
 */
record Probe(Supplier<Engine> engine, TrainingPlan plan, Dataset<Row> rows) {
  private static final double SECONDS = 1;
  private static final double HOUR = 3_600;
  private static final int FEW_STEPS = 3;
  private static final long MOST_STEPS = 20_000;
  /** Operations a second of a slow core, to see whether a few steps take too long. */
  private static final double SLOW = 10e9;

  /** {@code flops}: of a step on one worker; {@code period}: steps from one exchange to the next. */
  StepTime stepTime(double flops, long period) {
    boolean isLong = flops / plan.threads() / SLOW * FEW_STEPS > SECONDS;
    long few = Math.max(period, isLong ? 1 : FEW_STEPS);
    double[] first = train(few);
    double perStep = sum(first) / few;
    if (sum(first) > SECONDS) return of(first, new double[first.length], few);
    long rounds = (long) Math.ceil(SECONDS / perStep / period);
    long more = Math.max(1, Math.min(rounds, MOST_STEPS / period)) * period;
    return of(train(few + more), first, more);
  }

  /** Seconds of a worker, on average. */
  private double[] train(long steps) {
    Account account = Run.quietly(engine.get(), plan.probing(steps), rows).summary().account();
    CoreHours hours = account.coreHours();
    double seconds = HOUR / Math.max(1, account.cores());
    return new double[] {
        hours.computing() * seconds, hours.data() * seconds, hours.network() * seconds};
  }

  private static StepTime of(double[] all, double[] before, long steps) {
    double[] step = new double[all.length];
    for (int i = 0; i < all.length; i++) step[i] = Math.max(0, all[i] - before[i]) / steps;
    return new StepTime(step[0], step[1], step[2]);
  }

  private static double sum(double[] parts) {
    double sum = 0;
    for (double part : parts) sum += part;
    return sum;
  }
}
