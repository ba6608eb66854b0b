// SPDX-License-Identifier: Apache-2.0
/**
 * What a training is to do, fixed before it starts: {@code CaffeEstimator} makes a {@code TrainingPlan},
 * and the engines follow it.
 */
package cafetiere.spark.plan;
