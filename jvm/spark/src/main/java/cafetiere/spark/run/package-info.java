// SPDX-License-Identifier: Apache-2.0
/**
 * What the engines share: a task's work, its outcome, and whether a failure is followed by another
 * attempt.
 */
package cafetiere.spark.run;
