// SPDX-License-Identifier: Apache-2.0
/**
 * What the engines share: a run from the first check to its result, a task's work and outcome, and
 * whether a failure is followed by another attempt.
 */
package cafetiere.spark.run;
