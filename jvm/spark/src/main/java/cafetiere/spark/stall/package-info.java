// SPDX-License-Identifier: Apache-2.0
/** Tells where ranks are that stand still. */
package cafetiere.spark.stall;
