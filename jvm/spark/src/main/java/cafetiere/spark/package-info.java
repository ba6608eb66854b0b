// SPDX-License-Identifier: Apache-2.0
/**
 * Caffe's nets as stages of Spark ML. The public classes here are the interface; the packages below are
 * not, though Java makes what they share public.
 */
package cafetiere.spark;
