// SPDX-License-Identifier: Apache-2.0
/** Images as the engine decodes, resizes and transforms them. */
package cafetiere.core.image;
